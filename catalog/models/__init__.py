"""What exists: accounts, supplies, what they can do, and what customers may ask for."""

from catalog.models.audit import AuditEntry
from catalog.models.public_model import (
    DegradationMode,
    DegradationRule,
    DispatchPolicy,
    ModelRevision,
    PublicModel,
    RefusalIsolation,
    SupplyBinding,
    Tier,
)
from catalog.models.revision import CatalogueRevision
from catalog.models.supply import (
    AdminState,
    CapabilityVersion,
    CapacityGroup,
    Channel,
    Lifecycle,
    Modality,
    RealPersonPolicy,
    Supply,
)

__all__ = [
    "AdminState",
    "AuditEntry",
    "CapabilityVersion",
    "CapacityGroup",
    "CatalogueRevision",
    "Channel",
    "DegradationMode",
    "DegradationRule",
    "DispatchPolicy",
    "Lifecycle",
    "Modality",
    "ModelRevision",
    "PublicModel",
    "RealPersonPolicy",
    "RefusalIsolation",
    "Supply",
    "SupplyBinding",
    "Tier",
]
