"""The social media of the paper (id_based_ivm, figure 9), made inside DuckDB, and its eight views.

The relations have the paper's proportions: per user 100 friends and 20 microblogs; a tenth of the
microblogs is retweeted twice, a fifth mentions two users, two fifths are about two events each.
The paper describes its views in a line each; their SQL is written after that. Numbers of tweets
and of favorites, which the updates change, are read of every user that a view names.
"""

from dataclasses import dataclass

from bench._devices import Changes, Connection
from viewkeep.query.algebra import Node
from viewkeep.query.tables import Table
from viewkeep.sql import parse_view

HOURS = 1000
"""Microblogs are spread over so many hours."""
IN_RANGE = f"m.hour >= {HOURS // 2} and m.hour < {HOURS // 2 + HOURS // 10}"
"""A tenth of the time."""
IN_WIDE_RANGE = f"m.hour >= {HOURS // 10}"
"""Most of the time: the paper says of Q15 that its view is very large."""

USER = "u.uid, u.tweetsnum, u.favornum"
MENTIONS = "mention n join microblog m on n.mid = m.mid"
RETWEETS = "microblog o join retweet r on o.mid = r.remid join microblog m on r.mid = m.mid"
SUMS = "sum(w.tweetsnum) as tweets, sum(w.favornum) as favorites"


def _counted(user: str, source: str, where: str = "", other: str = "") -> tuple[str, str]:
    """Users with a count of joined rows, per other user if one is named: the count in a subquery,
    and over the whole join."""
    selection = f" where {where}" if where else ""
    grouped, named = (f", {other}", f", {other} as other") if other else ("", "")
    inner = f"select {user} as uid{named}, count(*) as n from {source}{selection}"
    outside = ", x.other" if other else ""
    return (
        f"select {USER}{outside}, x.n from users u join ({inner} group by {user}{grouped}) x "
        "on u.uid = x.uid",
        f"select {USER}{named}, count(*) as n from users u join {source} on u.uid = {user}"
        f"{selection} group by {USER}{grouped}",
    )


QUERIES = {
    "Q7": _counted("n.uid", MENTIONS, IN_RANGE),
    "Q10": _counted("o.uid", RETWEETS, IN_RANGE),
    "Q11": _counted("m.uid", RETWEETS, other="o.uid"),
    "Q15": (
        f"select {USER}, e.eventid, m.mid from users u join microblog m on u.uid = m.uid "
        f"join event e on m.mid = e.mid where {IN_WIDE_RANGE}",
    ),
    "Q18": _counted("m.uid", MENTIONS, other="n.uid"),
    "Q*1": (
        f"select a.uid, {SUMS} from users a join friendlist f on a.uid = f.uid "
        "join friendlist g on f.friendid = g.uid join users w on g.friendid = w.uid "
        "where a.city = w.city group by a.uid",
    ),
    "Q*2": (f"select o.uid, {SUMS} from {RETWEETS} join users w on m.uid = w.uid group by o.uid",),
    "Q*3": (
        f"select e.eventid, {SUMS} from event e join microblog m on e.mid = m.mid "
        "join users w on m.uid = w.uid group by e.eventid",
    ),
}
"""The SQL of each view; where it counts, also with the count over the join with the users."""
DESCRIPTIONS = {
    "Q7": "mentioned users within a time range",
    "Q10": "users who are retweeted within a time range",
    "Q11": "pairs of retweeting users, with how often",
    "Q15": "users talking about events within a time range",
    "Q18": "pairs of users of whom one mentions the other, with how often",
    "Q*1": "sums over friends of friends in the same city",
    "Q*2": "sums over the retweeters of every user",
    "Q*3": "sums over the users who tweet about an event",
}
TENTHS = {"retweet": 1, "mention": 2, "event": 4}
"""How many of ten microblogs retweet, mention or are about something, each twice."""


@dataclass(frozen=True)
class SocialMedia:
    """How many users, and how many friends and microblogs each has."""

    users: int = 1_000_000
    friends: int = 100
    microblogs: int = 20
    cities: int = 100
    events: int = 1000

    @property
    def tables(self) -> dict[str, Table]:
        """The declarations."""
        texts = {"mid": "int not null"}
        return {
            "users": Table(
                {
                    "uid": "int",
                    "city": "int not null",
                    "tweetsnum": "int not null",
                    "favornum": "int not null",
                },
                key=["uid"],
            ),
            "friendlist": Table(
                {"uid": "int not null", "friendid": "int not null"}, key=["uid", "friendid"]
            ),
            "microblog": Table(
                {"mid": "int", "uid": "int not null", "hour": "int not null"}, key=["mid"]
            ),
            "retweet": Table(texts | {"remid": "int not null"}, key=["mid", "remid"]),
            "mention": Table(texts | {"uid": "int not null"}, key=["mid", "uid"]),
            "event": Table(texts | {"eventid": "int not null"}, key=["mid", "eventid"]),
        }

    @property
    def rows(self) -> dict[str, int]:
        """About how many rows each table has."""
        blogs = self.users * self.microblogs
        return {
            "users": self.users,
            "friendlist": self.users * self.friends,
            "microblog": blogs,
            **{name: blogs * tenths // 10 * 2 for name, tenths in TENTHS.items()},
        }

    def views(self, query: str) -> list[Node]:
        """A view of the paper, in each form that it is written in."""
        return [parse_view(text, self.tables) for text in QUERIES[query]]

    def load(self, connection: Connection) -> None:
        """Create and fill the tables."""
        for name, text in self._contents().items():
            connection.execute(f"CREATE TABLE {name} AS {text}")

    def _contents(self) -> dict[str, str]:
        users, blogs = self.users, self.users * self.microblogs
        pairs = {
            "retweet": ("remid", f"hash(i, k, 3) % {blogs}"),
            "mention": ("uid", f"hash(i, k, 4) % {users}"),
            "event": ("eventid", f"hash(i, k, 5) % {self.events}"),
        }
        return {
            "users": f"SELECT i::INT AS uid, (hash(i) % {self.cities})::INT AS city, "
            f"(hash(i, 1) % 1000)::INT AS tweetsnum, (hash(i, 2) % 1000)::INT AS favornum "
            f"FROM range({users}) AS t (i)",
            "friendlist": f"SELECT DISTINCT i::INT AS uid, (hash(i, k) % {users})::INT AS friendid "
            f"FROM range({users}) AS t (i), range({self.friends}) AS f (k)",
            "microblog": f"SELECT i::INT AS mid, (hash(i, 6) % {users})::INT AS uid, "
            f"(hash(i, 7) % {HOURS})::INT AS hour FROM range({blogs}) AS t (i)",
        } | {
            name: f"SELECT DISTINCT i::INT AS mid, ({value})::INT AS {column} "
            f"FROM range({blogs}) AS t (i), range(2) AS f (k) WHERE i % 10 < {TENTHS[name]}"
            for name, (column, value) in pairs.items()
        }


def _new_numbers(data: SocialMedia, size: int, seed: int) -> str:
    return (
        'SELECT uid, city AS "city#pre", city AS "city#post", tweetsnum AS "tweetsnum#pre", '
        'tweetsnum + 1 AS "tweetsnum#post", favornum AS "favornum#pre", '
        'favornum + 2 AS "favornum#post" FROM users '
        f"ORDER BY hash(uid + {seed}) LIMIT {size}"
    )


NUMBERS = Changes(
    "new numbers of tweets and favorites",
    "users",
    "update",
    "du(users)",
    _new_numbers,
    'UPDATE users SET tweetsnum = d."tweetsnum#post", favornum = d."favornum#post" '
    'FROM "du(users)" AS d WHERE users.uid = d.uid',
    frozenset({"tweetsnum", "favornum"}),
)
