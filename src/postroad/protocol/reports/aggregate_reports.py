"""Parser of aggregate reports in mail: about DMARC (RFC 9990, RFC 7489) or TLS (RFC 8460), whichever it brings."""

import itertools

from postroad.protocol.reports import dmarc_report, report_files, tls_report


def read(mail: bytes) -> dmarc_report.Report | tls_report.ReceivedReport:
    """The first report in the attachments of a mail, or a ReportError about the first that is none."""
    problem = None
    for attachment in report_files.attachments(mail):
        try:
            return read_file(attachment)
        except report_files.ReportError as error:
            problem = problem or error
    raise problem or report_files.ReportError("the mail has no attachment that could be a report")


def read_file(content: bytes) -> dmarc_report.Report | tls_report.ReceivedReport:
    """The report in a file, packed or not. Raises ReportError."""
    pieces = report_files.unpack(content)
    first = next(pieces, b"")
    pieces = itertools.chain((first,), pieces)
    return tls_report.read(pieces) if first.lstrip().startswith(b"{") else dmarc_report.read(pieces)
