"""People and customers."""

import factory
from django.contrib.auth.models import Group, User

from billing import models as billing
from billing.keys import new_key
from tests.factories.rows import Rows


class UserFactory(Rows[User]):
    """A console user; `UserFactory(roles=["operator"])`."""

    class Meta:
        model = User
        skip_postgeneration_save = True

    username = factory.Sequence(lambda n: f"operator{n}")

    @factory.post_generation
    def roles(self: User, _create: bool, extracted: list[str] | None, **_: object) -> None:
        for name in extracted or []:
            self.groups.add(Group.objects.get_or_create(name=name)[0])


class CustomerGroupFactory(Rows[billing.CustomerGroup]):
    class Meta:
        model = billing.CustomerGroup

    slug = factory.Sequence(lambda n: f"group-{n}")
    name = factory.LazyAttribute(lambda o: o.slug.title())


class CustomerFactory(Rows[billing.Customer]):
    class Meta:
        model = billing.Customer

    name = factory.Sequence(lambda n: f"Customer {n}")


class ApiKeyFactory(Rows[billing.ApiKey]):
    """`key.secret` is the key as its owner knows it."""

    class Meta:
        model = billing.ApiKey

    class Params:
        made = factory.LazyFunction(new_key)

    customer = factory.SubFactory(CustomerFactory)
    prefix = factory.LazyAttribute(lambda o: o.made.prefix)
    last_four = factory.LazyAttribute(lambda o: o.made.last_four)
    hash = factory.LazyAttribute(lambda o: o.made.hash)
    scopes = factory.LazyFunction(lambda: ["read", "submit"])


def api_key(**values: object) -> tuple[billing.ApiKey, str]:
    """A key's row and its secret."""
    made = new_key()
    return ApiKeyFactory(prefix=made.prefix, last_four=made.last_four, hash=made.hash, **values), made.secret
