"""What a caller of billing can do wrong."""

from billing.money import written


class BillingError(Exception):
    """Base of the errors below; `code` is stable and documented."""

    code = "billing_error"


class InsufficientCredit(BillingError):
    """The customer's balance does not cover the price: add credit or ask for something cheaper."""

    code = "insufficient_credit"

    def __init__(self, needed_micros: int, currency: str) -> None:
        self.needed_micros, self.currency = needed_micros, currency
        super().__init__(
            f"The balance does not cover this request, which reserves {written(needed_micros)} {currency}."
        )
