"""Customers and their keys, what supplies charge, and the two books that are never mixed."""

from collections.abc import Collection

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import F, Func, Q, Value

from catalog.fields import PublicIdField
from catalog.models import Supply

_SELDOM_CREDIT = Q(kind__in=["deposit", "correction"])


class CustomerGroup(models.Model):
    """Customers that may use the same public models."""

    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=120)

    def __str__(self) -> str:
        return self.slug


class Customer(models.Model):
    """A tenant of the gateway."""

    public_id = PublicIdField("cus")
    name = models.CharField(max_length=120, unique=True)
    group = models.ForeignKey(
        CustomerGroup, null=True, blank=True, on_delete=models.PROTECT, related_name="customers"
    )
    active = models.BooleanField(default=True)
    currency = models.CharField(max_length=3, default="USD")
    balance_micros = models.BigIntegerField(default=0)  # always the sum of the customer's credit entries
    max_in_flight = models.PositiveIntegerField(default=1_000)  # jobs
    max_queued = models.PositiveIntegerField(default=10_000)  # jobs
    weight = models.PositiveIntegerField(default=1)  # share in the fair queue
    project_priorities = models.JSONField(
        default=dict, db_default={}, blank=True
    )  # {project: level} of its own projects, as billing.priorities takes them
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(weight__gte=1), name="customer_weight_at_least_1")]

    def __str__(self) -> str:
        return self.name


class ApiKey(models.Model):
    """A customer's key: shown once, kept as a prefix and a hash."""

    public_id = PublicIdField("key")
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="api_keys")
    name = models.CharField(max_length=120, blank=True)
    prefix = models.CharField(max_length=16)  # with the last four, what people recognise it by
    last_four = models.CharField(max_length=4)
    hash = models.CharField(max_length=64, unique=True)  # SHA-256: the key itself has 160 random bits
    scopes = models.JSONField(default=list)  # of billing.keys.SCOPES
    allowed_addresses = models.JSONField(default=list, blank=True)  # CIDR; empty: any
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.prefix}…{self.last_four}"


class CostRule(models.Model):
    """How one supply charges us; its versions hold the prices."""

    public_id = PublicIdField("prc")
    supply = models.OneToOneField(Supply, on_delete=models.PROTECT, related_name="cost_rule")

    def __str__(self) -> str:
        return f"cost of {self.supply}"


class CostMode(models.TextChoices):
    PER_SECOND = "per_second"
    PER_REQUEST = "per_request"
    PER_TOKEN = "per_token"  # noqa: S105 - stored, never executed


def _interval() -> Func:
    return Func(
        F("effective_from"),
        F("effective_to"),
        Value("[)"),
        function="TSTZRANGE",
        output_field=DateTimeRangeField(),
    )


class CostRuleVersion(models.Model):
    """A price from a time on; two of a rule never overlap. Immutable but for its end, and its cancellation
    before it begins."""

    public_id = PublicIdField("prv")
    rule = models.ForeignKey(CostRule, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    mode = models.CharField(max_length=11, choices=CostMode)
    currency = models.CharField(max_length=3)
    document = models.JSONField()  # by billing.pricing
    document_hash = models.CharField(max_length=64)
    effective_from = models.DateTimeField()
    effective_to = models.DateTimeField(null=True, blank=True)
    cancelled_at = models.DateTimeField(null=True, blank=True)  # before it began: it never is in force
    published_by = models.CharField(max_length=150)
    published_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rule", "number"], name="one_price_per_version_number"),
            models.CheckConstraint(
                condition=Q(effective_to=None) | Q(effective_to__gt=F("effective_from")),
                name="price_ends_after_it_begins",
            ),
            ExclusionConstraint(
                name="prices_of_a_rule_never_overlap",
                condition=Q(cancelled_at=None),
                expressions=[("rule", RangeOperators.EQUAL), (_interval(), RangeOperators.OVERLAPS)],
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rule} v{self.number}"


class CurrencyRateVersion(models.Model):
    """Units of `to_currency` for one unit of `from_currency`, from a time on."""

    public_id = PublicIdField("fxr")
    from_currency = models.CharField(max_length=3)
    to_currency = models.CharField(max_length=3)
    rate = models.DecimalField(max_digits=20, decimal_places=10)
    effective_from = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["from_currency", "to_currency", "effective_from"], name="one_rate_per_pair_and_time"
            ),
            models.CheckConstraint(condition=Q(rate__gt=0), name="rate_above_zero"),
        ]

    def __str__(self) -> str:
        return f"{self.from_currency}→{self.to_currency} {self.rate}"


class UsageQuerySet(models.QuerySet["ProviderUsageEntry"]):
    def of_attempts(self, attempts: Collection[str]) -> "UsageQuerySet":
        """By public ids. In two parts, as the two partial indexes say it: the whole book has no third one."""
        seldom = Q(kind=ProviderUsageEntry.Kind.CORRECTION)
        return self.filter(Q(attempt__in=attempts) & ~seldom | Q(attempt__in=attempts) & seldom)


class ProviderUsageEntry(models.Model):
    """One line of what providers charge us; append-only. Corrections are counter-entries."""

    class Kind(models.TextChoices):
        EXPECTED = "expected"  # at acceptance, by the quote
        REVERSAL = "reversal"  # takes the expectation back when the true cost is known
        SETTLED = "settled"
        CORRECTION = "correction"

    attempt = models.CharField(max_length=40)  # public id
    supply = models.ForeignKey(Supply, on_delete=models.PROTECT, related_name="usage_entries")
    kind = models.CharField(max_length=10, choices=Kind)
    amount_micros = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    cost_rule_version = models.ForeignKey(CostRuleVersion, null=True, on_delete=models.PROTECT)
    platform_loss = models.BooleanField(default=False)  # ours to bear, never the customer's
    details = models.JSONField(default=dict)
    at = models.DateTimeField()

    objects = UsageQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "provider usage entries"
        constraints = [
            models.UniqueConstraint(
                fields=["attempt", "kind"],
                condition=~Q(kind="correction"),
                name="one_usage_entry_per_attempt_and_kind",
            )
        ]
        indexes = [
            models.Index(fields=["at", "id"], name="usage_of_days"),  # the ledger's page
            # what is seldom, which the index of all lines would be read through for
            models.Index(fields=["at", "id"], condition=Q(kind="correction"), name="usage_seldom_of_days"),
            models.Index(fields=["attempt"], condition=Q(kind="correction"), name="usage_seldom_of_attempt"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.amount_micros} {self.currency} for {self.attempt}"


class CreditQuerySet(models.QuerySet["CreditEntry"]):
    def of_job(self, job: str) -> "CreditQuerySet":
        """By its public id; in two parts, as the two partial indexes say it."""
        usual = Q(kind__in=["reserve", "release", "charge"])
        return self.filter(Q(job=job) & usual | Q(job=job) & _SELDOM_CREDIT)


class CreditEntry(models.Model):
    """One line of a customer's account; append-only. The balance is the sum: deposits are positive,
    reserves and charges negative, releases positive."""

    class Kind(models.TextChoices):
        DEPOSIT = "deposit"
        RESERVE = "reserve"  # at admission
        RELEASE = "release"  # the reserve, given back at the end
        CHARGE = "charge"  # for what was delivered
        CORRECTION = "correction"

    customer = models.ForeignKey(
        Customer, on_delete=models.PROTECT, related_name="credit_entries", db_index=False
    )
    job = models.CharField(max_length=40, blank=True)  # public id; empty for deposits
    kind = models.CharField(max_length=10, choices=Kind)
    amount_micros = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    note = models.CharField(max_length=300, blank=True)
    details = models.JSONField(default=dict, db_default={})  # what a degraded result lacks
    at = models.DateTimeField()

    objects = CreditQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "credit entries"
        constraints = [
            models.UniqueConstraint(
                fields=["job", "kind"],
                condition=Q(kind__in=["reserve", "release", "charge"]),
                name="one_credit_entry_per_job_and_kind",
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["deposit", "correction"]) | ~Q(job=""),
                name="job_entries_name_their_job",
            ),
        ]
        indexes = [
            models.Index(fields=["customer", "-id"], name="credit_of_customer"),  # balance and usage pages
            models.Index(
                fields=["customer", "at"],
                include=["kind", "currency", "amount_micros"],
                name="credit_of_customer_by_day",
            ),  # a customer's sums, from the index alone
            models.Index(fields=["at", "id"], name="credit_of_days"),  # the ledger's page
            models.Index(fields=["at", "id"], condition=_SELDOM_CREDIT, name="credit_seldom_of_days"),
            models.Index(fields=["job"], condition=_SELDOM_CREDIT, name="credit_seldom_of_job"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.amount_micros} {self.currency}"


class Book(models.TextChoices):
    CUSTOMERS = "customers"
    PROVIDERS = "providers"


class HourOfBook(models.Model):
    """What the lines of one book, hour and kind come to, as far as `SummedTo` says: so that no page adds up
    what only grows."""

    book = models.CharField(max_length=9, choices=Book)
    hour = models.DateTimeField()  # its begin
    kind = models.CharField(max_length=10)
    currency = models.CharField(max_length=3)
    supply = models.ForeignKey(Supply, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    platform_loss = models.BooleanField(default=False)
    micros = models.BigIntegerField()
    lines = models.BigIntegerField()

    class Meta:
        verbose_name_plural = "hours of books"
        constraints = [
            models.UniqueConstraint(
                fields=["book", "hour", "kind", "currency", "supply", "platform_loss"],
                nulls_distinct=False,
                name="one_sum_per_hour_and_kind",
            )
        ]

    def __str__(self) -> str:
        return f"{self.book} {self.hour:%Y-%m-%d %H} {self.kind}: {self.micros} {self.currency}"


class SummedTo(models.Model):
    """How far a book is summed up: every line up to number `line` is in its hours, and no other."""

    book = models.CharField(max_length=9, choices=Book, primary_key=True)
    line = models.BigIntegerField(default=0)
    seen = models.BigIntegerField(default=0)  # the newest line at `seen_at`
    seen_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "summed to"

    def __str__(self) -> str:
        return f"{self.book} up to {self.line}"
