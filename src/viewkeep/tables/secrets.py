"""Credentials of object stores, which no message may show.

Stores repeat parts of a request in the text of an error: S3 the ID of the key and what was signed,
Azure an address with its signature. Credentials are told from other settings by their names, in
the storage options of a lake and in the environment.
"""

import os
import re
from collections.abc import Iterable, Mapping

HIDDEN = "***"
SHORTEST = 6
"""A value of fewer characters is hidden nowhere: it may be part of any word."""

_CREDENTIAL = re.compile(r"key|secret|token|password|credential|sas|signature", re.IGNORECASE)
_NO_CREDENTIAL = re.compile(r"(file|path|uri|url|endpoint|skip_signature)$", re.IGNORECASE)
_STORES = ("AWS_", "AZURE_", "GOOGLE_", "GCS_", "S3_", "OSS_", "R2_", "CLOUDFLARE_")
_FORMS = tuple(
    re.compile(form, re.IGNORECASE | re.DOTALL)
    for form in (
        r"(?<=<AWSAccessKeyId>).*?(?=</)",
        r"(?<=<StringToSign>).*?(?=</)",
        r"(?<=<StringToSignBytes>).*?(?=</)",
        r"(?<=<SignatureProvided>).*?(?=</)",
        r"(?<=<CanonicalRequest>).*?(?=</)",
        r"(?<=<CanonicalRequestBytes>).*?(?=</)",
        r"(?<=<Token-0>).*?(?=</)",
        r"(?<=credential=)[^&\s,\"']+",
        r"(?<=signature=)[^&\s,\"']+",
        r"(?<=token=)[^&\s,\"']+",
        r"(?<=[?&]sig=)[^&\s,\"']+",
        r"(?<=bearer )[^\s,\"']+",
        r"(?<=://)[^/@\s]*:[^/@\s]*(?=@)",
        r"\b(AKIA|ASIA)[A-Z0-9]{16}\b",
    )
)
"""Where the answers of stores have credentials that are set neither here nor in the environment."""

_KNOWN: set[str] = set()
"""The credentials in storage options of this process."""


def is_credential(name: str) -> bool:
    """Whether a storage option is a credential, by its name.

    >>> is_credential("AWS_SECRET_ACCESS_KEY"), is_credential("AWS_REGION")
    (True, False)
    """
    return bool(_CREDENTIAL.search(name)) and not _NO_CREDENTIAL.search(name)


def note_credentials(options: Mapping[str, str] | None) -> None:
    """Hide the credentials of storage options in all messages from now on."""
    _KNOWN.update(_values((options or {}).items()))


def without_credentials(text: str) -> str:
    """A message without credentials.

    >>> without_credentials("403: <Error><AWSAccessKeyId>abc</AWSAccessKeyId></Error>")
    '403: <Error><AWSAccessKeyId>***</AWSAccessKeyId></Error>'
    """
    for form in _FORMS:
        text = form.sub(HIDDEN, text)
    environment = ((n, v) for n, v in os.environ.items() if n.upper().startswith(_STORES))
    for value in sorted(_KNOWN.union(_values(environment)), key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return text


def has_credentials(uri: str) -> bool:
    """Whether a URI has a password or a signature in it.

    >>> has_credentials("https://a.net/lake?sig=x"), has_credentials("abfss://lake@a.net/x")
    (True, False)
    """
    authority = uri.partition("://")[2].partition("/")[0]
    return "://" in uri and ("?" in uri or ":" in authority.rpartition("@")[0])


def _values(options: Iterable[tuple[str, str]]) -> set[str]:
    return {str(v) for n, v in options if is_credential(n) and len(str(v)) >= SHORTEST}
