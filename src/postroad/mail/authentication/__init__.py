"""Who sent a mail that came in: SPF, DKIM, DMARC and ARC. Begin in `authenticate.py`.

Lookups go through our resolver, with its limits, and nothing may raise or take long, whatever a stranger writes. No
library holds to that. Those for SPF and for all four (pyspf, authheaders) have had no release for years; one asks DNS
by itself, and the other takes a domain with a hyphen for a shorter one. The one for DKIM and ARC (dkimpy) verifies as
many sets as there are. Those for DMARC do not follow the tree of RFC 9989 (dmarc), or ask DNS by themselves
(checkdmarc). So they are peers in tests: dkimpy for signatures and chains, and the test suite of RFC 7208 for SPF.
"""
