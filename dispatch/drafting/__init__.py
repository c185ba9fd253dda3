"""A public model as it is edited: its fields, what they mean, what differs, who else changed it; pure."""
