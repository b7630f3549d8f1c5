"""Who sent a mail that came in: SPF, DKIM, DMARC and ARC. Begin in `authenticate.py`.

The lookups go through our resolver, with its limits, and nothing may raise or take long, whatever a stranger writes. No
library does that: those for SPF and for all four (pyspf, authheaders) have had no release for years, ask DNS by
themselves or take a domain with a hyphen for a shorter one; those for DKIM and ARC (dkimpy) verify as many sets as there
are; those for DMARC (dmarc, checkdmarc) do not follow the tree of RFC 9989 or bring an HTTP client. So they are peers in
tests: dkimpy for signatures and chains, and the test suite of RFC 7208 for SPF.
"""
