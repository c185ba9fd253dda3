"""The work: jobs, their attempts and the evidence of each decision, slots, and results."""

from dispatch.models.capacity import CapacityLease, LeaseState, Occupancy
from dispatch.models.console import SavedView, SupplyDraft, TrialCall, TrialState
from dispatch.models.desk import DeskClaim, GivingUp
from dispatch.models.editing import FormReceipt, RefusedMeanwhile, WorkingCopy
from dispatch.models.figures import HourOfQueue, HourOfWork, PeakOfSlots, PublicationWatch
from dispatch.models.job import Attempt, Job, ProviderJob, SelectionCount, SelectionRound, ServiceClass
from dispatch.models.maintenance import AtEnd, Maintenance, MaintenanceMode
from dispatch.models.queue import ClassTurn, Line, Lot, ProviderTime, TenantQueue
from dispatch.models.record import Asset, Bell, ProviderEvent, RejectedCallback, WorkerBeat

__all__ = [
    "Asset",
    "AtEnd",
    "Attempt",
    "Bell",
    "CapacityLease",
    "ClassTurn",
    "DeskClaim",
    "FormReceipt",
    "GivingUp",
    "HourOfQueue",
    "HourOfWork",
    "Job",
    "LeaseState",
    "Line",
    "Lot",
    "Maintenance",
    "MaintenanceMode",
    "Occupancy",
    "PeakOfSlots",
    "ProviderEvent",
    "ProviderJob",
    "ProviderTime",
    "PublicationWatch",
    "RefusedMeanwhile",
    "RejectedCallback",
    "SavedView",
    "SelectionCount",
    "SelectionRound",
    "ServiceClass",
    "SupplyDraft",
    "TenantQueue",
    "TrialCall",
    "TrialState",
    "WorkerBeat",
    "WorkingCopy",
]
