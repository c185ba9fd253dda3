"""The operator console: function views that decide permission, ask bounded queries, and render."""
