"""The work: jobs, their attempts and the evidence of each decision, slots, and results."""

from dispatch.models.capacity import CapacityLease, LeaseState, Occupancy
from dispatch.models.desk import DeskClaim
from dispatch.models.job import Attempt, Job, ProviderJob, SelectionCount, SelectionRound, ServiceClass
from dispatch.models.record import Asset, Bell, ProviderEvent, RejectedCallback, WorkerBeat

__all__ = [
    "Asset",
    "Attempt",
    "Bell",
    "CapacityLease",
    "DeskClaim",
    "Job",
    "LeaseState",
    "Occupancy",
    "ProviderEvent",
    "ProviderJob",
    "RejectedCallback",
    "SelectionCount",
    "SelectionRound",
    "ServiceClass",
    "WorkerBeat",
]
