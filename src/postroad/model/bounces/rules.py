"""The tables that map a server's reply to a reason. Literals only; `classifier` reads them.

They are consulted in this order, and the first match decides:

1. `SURE_CODES`: enhanced codes (RFC 3463 and its registry) with one meaning everywhere.
2. `PHRASES`: what servers write. Blocks and limits come first and addresses last, because a reply that quotes another
   one must not put an address on the suppression list.
3. `LIKELY_CODES`: enhanced codes that some servers use loosely, so phrases come before them.
4. `VAGUE_PHRASES`: words that fit many causes.
5. `SUBJECTS`, the first two parts of an enhanced code, and `BASIC_CODES` (RFC 5321 section 4.2.3).

Phrases are separated by commas. A phrase is a sequence of words in lower case without punctuation; it starts at a word
boundary and may end inside a word. The searched text begins with the parts of the enhanced code, so `5 4 1 rec…` is
Microsoft's 5.4.1. Tables of enhanced codes omit the first digit: the reply code already says whether to retry.
"""

from typing import Final

SURE_CODES: Final = {
    "2.2": "mailbox_full",
    "2.3": "message_too_large",
    "3.4": "message_too_large",
    "4.6": "mail_loop",
    "4.14": "mail_loop",  # Microsoft: hop count exceeded
    "5.3": "too_many_recipients",
    "6.7": "extension_missing",  # RFC 6531: SMTPUTF8
    "6.9": "extension_missing",
    "7.10": "encryption_required",
    "7.20": "not_authenticated",  # RFC 7372: DKIM
    "7.21": "not_authenticated",
    "7.22": "not_authenticated",
    "7.24": "not_authenticated",  # RFC 7372: SPF
    "7.25": "no_reverse_dns",  # RFC 7372
    "7.26": "not_authenticated",  # RFC 7372: several checks at once
    "7.28": "rate_limited",  # the registry's "mail flood"
    "7.57": "login_required",  # Microsoft
    "7.508": "rate_limited",  # Microsoft
    "7.509": "not_authenticated",  # Microsoft: DMARC
    "7.511": "ip_blocked",  # Microsoft
    "7.515": "not_authenticated",  # Microsoft: demands on senders of bulk mail
}

PHRASES: Final = {
    "greylisted": """
        greylist, graylist, grey list, gray list, please come back in, first time sender, triplet, gl01
    """,
    "session_limit": """
        too many messages in one connection, too many messages in this connection, too many messages in this session,
        too many messages per connection, too many mails in this session, too many emails per connection,
        max message per connection, maximum number of messages per connection, message limit for this connection,
        maximum messages per session, message count per connection, too many messages for this session,
        too many transactions in this session, limit on the number of messages in this session
    """,
    "mailbox_busy": """
        receiving mail at a rate that, receiving mail too quickly, receiving mail too fast, answer 6592,
        recipient is receiving too many, mailbox is receiving too, recipient s message rate exceeded,
        recipient thread limit, recipthreadlimit, p receivingrate, user is receiving too many
    """,
    "encryption_required": """
        must issue a starttls, starttls first, starttls is required, starttls required, tls required, tls is required,
        encryption required, requires tls, encryption needed, session encryption is required, secure connection,
        must use tls, requires encryption, over a tls connection, without tls
    """,
    "not_authenticated": """
        dmarc, spf, dkim, unauthenticated email, unauthenticated mail, not authenticated email,
        sender is unauthenticated, sender unauthenticated, sender policy framework, authentication results,
        authentication checks, does not pass authentication, sender id, arc validation, email authentication,
        fails authentication, sender authentication
    """,
    "too_many_connections": """
        too many connection, too many concurrent, too many simultaneous, too many open connection, too many sessions,
        too many smtp sessions, too many parallel, maximum number of connections, maximum connections, connection limit,
        connections limit, connection rate, concurrent smtp connections, concurrent connection, number of concurrent,
        connection frequency limited, connecting too often, connects too often, simultaneous connections,
        reduce your connection
    """,
    "rate_limited": """
        rate limit, ratelimit, rate is limited, rate exceeded, rate has been exceeded, exceeded the rate,
        exceeds the rate, unusual rate, sending rate, message rate, throttl, too many messages, too many emails,
        too many mails, too much mail, too many requests, too many commands, too fast, too frequent, slow down,
        unexpected volume, volume of mail, sending limit, exceeded the maximum number of messages,
        exceeded messaging limits, exceeded its hourly, hourly limit, daily limit, message quota exceeded,
        messages per hour, messages per minute, limit exceeded for sender, mail from your host is limited,
        exceeded the allowed, quota exceeded for sender, frequency limited, reduce the rate, try sending more slowly,
        sending too, deferred due to user complaints, temporarily deferred due to, retry your send at a later, rp 00,
        too many recipients received, recipients this hour
    """,
    "too_many_recipients": """
        too many recipients, too many rcpt, recipient limit exceeded, recipients limit, maximum recipients,
        one recipient at a time, multiple destination domains per transaction, exceeds the maximum number of recipients
    """,
    "no_reverse_dns": """
        reverse dns, reverse lookup, reverse hostname, ptr record, ptr entry, does not have a ptr, no ptr, rdns,
        cannot find your reverse, cannot find your hostname, unable to verify your hostname, does not resolve to a name,
        resolve your ip, invalid dns ptr, fcrdns, ipv6 sending guidelines
    """,
    "hello_rejected": """
        helo command rejected, ehlo command rejected, invalid helo, invalid ehlo, bad helo, bad ehlo, helo name,
        ehlo name, need fully qualified hostname, helo required, ehlo required, helo requires, ehlo requires,
        invalid hostname in helo, helo mismatch, helo should, forged helo, fake helo, helo ehlo, helo verification
    """,
    "link_blocked": """
        uribl, surbl, url in this email, urls in this, blacklisted url, blocked url, url blacklist, contains a url,
        contains url, contains a link, contains links, suspicious link, links to a, spamvertised, url listed,
        message contains a blocked, bad url
    """,
    "domain_blocked": """
        dbl spamhaus, rhsbl, reputation of the sending domain, domain reputation, reputation of your domain,
        reputation of the domain, sender domain is block, sender domain blocked, sender domain listed,
        your domain is block, your domain is blacklisted, your domain has been blocked, your domain is listed,
        sending domain is block, domain is on our block, sender domain is on, blacklisted domain, from domain is block,
        domain is banned, domain blacklist, domain blocklist, sender blacklist, sender is blacklist, sender is block,
        sender blocked, sender address blacklist, sender address is black, sender address is block, sender is listed,
        sender in blacklist, from address is block, from address is black, blacklisted by recipient
    """,
    "ip_blocked": """
        spamhaus, spamcop, barracudacentral, barracuda reputation, sorbs, abuseat, mailspike, uceprotect, dnsbl, dnsrbl,
        rbl, blacklist, blocklist, block list, black list, denylist, deny list, blocked using, client host rejected,
        banned sending ip, ip address blocked, ip address is blocked, ip address has been blocked, ip is blocked,
        ip blocked, ip has been blocked, blocked ip, host is blocked, host blocked, your network is on our block,
        part of your network, messages from ip, connections from your ip, connections will not be accepted,
        reputation of the sending ip, ip reputation, reputation of your ip, reputation of the ip, senderscore,
        sender score, senderbase, talosintelligence, mta s poor reputation, mtas poor reputation, sending mta,
        reputation service, cloudmark, ipcheck, delist, bad reputation of ip, ip not in whitelist, ip listed,
        a problem occurred ask your postmaster, tosa rx, s3140, s3150, banned ip, blocked due to abuse,
        your mail server has been, your server has been, mail server blocked, your access to this mail system,
        dynamic ip, residential, the ip you re using, will be permanently deferred, is listed, are listed,
        currently listed, been listed, listed by, ip is on, blocked see, your ip address is, your ip has been,
        your ip is not allowed, email from ip, mail from your ip, emails from your ip, we don t accept mail from your,
        not accepting mail from your, connections from this host, ou 00, sc 00, dy 001, access to submit messages,
        not allowed to connect, poor reputation sender
    """,
    "low_reputation": """
        reputation, poor sender, low trust, not trusted, suspicious sender, suspicious activity, user complaints,
        history of abuse, spam source, spammer
    """,
    "malware_suspected": """
        virus, malware, malicious, infected, trojan, phishing, potential security issue, potentially dangerous,
        attachment type, dangerous attachment, blocked attachment, attachment is not allowed, attachments not allowed,
        banned attachment, banned file, prohibited attachment, attachment blocked, attachment not allowed,
        illegal attachment, eicar, forbidden attachment, executable file, executable attachment
    """,
    "spam_suspected": """
        unsolicited, junk, looks like ube, uce, considered harmful, score exceeds, as spam, spam detected, spam message,
        spam content, spam score, is spam, like spam, likely spam, suspected spam, possible spam, probable spam,
        probability of spam, spam reject, spam mail, considered spam, to be spam, spam filter, spam violation,
        anti spam, antispam, message filtered, spam found, detected spam, contains spam, contain spam, because of spam,
        detected as bulk, message score, due to spam, for spam
    """,
    "no_mail_service": "no smtp service, no mail service",
    "mailbox_full": """
        mailbox full, mailbox is full, mailbox size limit, over quota, overquota, quota exceed, exceeded quota,
        exceeds quota, exceeded storage, out of storage, storage quota, out of quota, mailbox exceeded, mail quota,
        mailbox quota, inbox is full, inbox full, user is full, maildir over, account is full, account is over,
        disk quota, not enough space for, insufficient storage for, mailbox too large, exceeded his, exceeded their,
        recipient storage full, quota full, exceeded mailbox, boite pleine, mailbox limit
    """,
    "message_too_large": """
        message size, maximum size, size limit, mail size, too large, exceeds fixed, exceeds size,
        exceeds maximum message, fixed maximum, larger than, message length exceeds, message exceeds, max size, too big,
        size exceed
    """,
    "mail_loop": """
        mail loop, mail is looping, loops back, routing loop, loop detected, too many hops, hop count, hopcount,
        maximum hop, too many received, message looping, forwarding loop
    """,
    "relaying_denied": """
        not local to this, rcpthosts, isn t in my control, not hosted here, domain not hosted,
        we do not accept mail for, do not handle mail for, not our domain, not a local domain, domain isn t allowed,
        domain not in allowed, no such domain at this, not configured to accept mail for, tenant not found,
        tenantattribution, domain is not hosted, we don t handle mail for, not responsible for, relaying, relay access,
        relay not, relay denied, not relay, to relay, relay is, no relay, relay for, relay prohibited, relay operation
    """,
    "sender_not_allowed": """
        only accepts mail from, only accepts messages from, only accept mail from, only accept messages from,
        restricted to, not permitted to send to, not allowed to send to, not authorized to send, not authorised to send,
        don t have permission, do not have permission, senderauthenticated, resolver rst, restrictdist,
        accept mail from certain, sender is not in the, not on the allowed, sender not allowed, allowed senders,
        permission to post, closed list, moderat, sender is not allowed, blocked your, sender denied, refuses mail from,
        has blocked, who can send, expediteurs, expéditeurs, members only, does not accept mail from,
        not accepting mail from, doesn t accept mail from, authorized senders, you are not a member,
        sender is not a member
    """,
    "login_required": """
        authentication required, authentication is required, client was not authenticated, client not authenticated,
        must authenticate, auth required, authenticate first, smtp auth, must login, log in first, login required,
        please authenticate, requires authentication, not logged in, pop before smtp, must check for new mail,
        need to authenticate
    """,
    "sender_rejected": """
        sender address, sender rejected, sender domain, sender verif, sender callout, callback verif, domain of sender,
        invalid sender, bad sender, envelope sender, return path, mail from domain, sender unknown, unknown sender,
        sender refused, mail from rejected, sender is not valid, reverse path, null sender, sender not found,
        sender does not exist, mx of sender, sender s domain, backscatter, bounce address, invalid dns mx,
        no mx for sender, sending domain does not, mx or a record, sender is invalid, verify the sender, verify sender,
        sender validation, address from rejected, mail from address, sender s address, sender email
    """,
    "destination_busy": """
        server busy, server is busy, system busy, too busy, overload, system load, high load, load average,
        resources temporarily, system resources, insufficient resources, resources are low, out of resources,
        low on resources, server load, resource restrictions, currently busy, backlog, temporarily rejected server
    """,
    "command_refused": """
        too many errors, too many syntax, too many bad, too many invalid, too many unknown, too many nonmail,
        improper command, unrecognized command, command not recognized, command unrecognized, command unknown,
        unknown command, bad sequence, out of sequence, protocol violation, synchronization error
    """,
    "bad_format": """
        5322, 2822, rfc 822, rfc822, malformed message, malformed header, malformed mail, bare lf, bare cr,
        bare newline, bare linefeed, smtp smuggling, line too long, lines too long, line length, too long line,
        maximum line, missing header, header missing, headers missing, duplicate header, multiple from,
        multiple addresses in from, from header, missing from, date header, subject header, message id header,
        valid message id, badly formed message, badly formed header, bad header, header syntax, invalid header,
        not rfc compliant, header size, invalid date, null character, illegal character, non compliant, nonconforming,
        mime error, mime structure, invalid mime, bad mime, 8 bit data, 8bit data, unencoded
    """,
    "content_refused": """
        content denied, rejected content, content not accepted, message content, mail content, content policy,
        banned content, content filter, prohibited content, forbidden content, inappropriate content, content is not,
        content restriction, offensive, objectionable, body rejected, subject rejected, content reject, message body
    """,
    "disabled_address": """
        account disabled, account is disabled, account has been disabled, account inactive, account is inactive,
        mailbox disabled, mailbox is disabled, mailbox inactive, mailbox is inactive, user disabled, user is disabled,
        inactive user, inactive account, inactive mailbox, disabled user, disabled mailbox,
        account that you tried to reach is disabled, account that you tried to reach is inactive, p disableduser,
        recipient is inactive, recipient is disabled, account suspended, account is suspended, suspended account,
        user suspended, user is suspended, mailbox suspended, account closed, account has been closed,
        account is closed, account terminated, account deleted, account expired, account has expired, no longer active,
        no longer in use, no longer valid, no longer exists, no longer works, no longer employed, no longer with,
        user is terminated, address is inactive, address disabled, is deactivated, deactivated mailbox,
        address inactive, address is disabled, mailbox has been disabled, user is inactive, user not active,
        account not active, account is not active, mailbox not active, mailbox is not active,
        account has been deactivated, mailbox has been deactivated, user has been deactivated,
        address has been deactivated, account not activated, mailbox not activated
    """,
    "bad_address": """
        bad address syntax, invalid address syntax, syntax error in recipient, malformed recipient, malformed address,
        illegal address, syntactically invalid, invalid recipient syntax, invalid local part, not a valid rfc,
        badly formed address, recipient address syntax
    """,
    "null_mx": """
        null mx
    """,
    "moved_address": """
        user not local, user has moved, address has changed, user moved, recipient has moved, address changed
    """,
    "unknown_address": """
        5 1 0 address rejected, 5 4 1 recipient address rejected access denied,
        5 5 0 requested action not taken mailbox unavailable, user unknown, unknown user, recipient unknown,
        unknown recipient, unknown mailbox, mailbox unknown, address unknown, unknown address, unknown local part,
        unknown account, unknown email address, unknown or illegal alias, no such user, no such recipient,
        no such mailbox, no such address, no such account, no such local user, no such person, no such email,
        no such name, nosuchuser, no mailbox here, no mailbox by that, no mailbox found, no account by that,
        no user here, no user record, no valid mailbox, no recipient found, user not found, user not known,
        user not exist, user is unknown, user isn t known, user was not found, not a known user, not our customer,
        not known here, recipient not found, recipient does not exist, recipient not exist, recipient doesn t exist,
        recipient is not valid, recipient is invalid, recipientnotfound, recipient not recognized,
        recipient could not be found, recipient is not exist, recipient address has not been found, mailbox not found,
        mailbox does not exist, mailbox doesn t exist, mailbox not exist, mailbox is not found, not a valid mailbox,
        invalid mailbox, mailbox invalid, mailbox not known, invalid recipient, invalid address, invalid user,
        invalid email address, address invalid, address does not exist, address doesn t exist, address not found,
        address not known, address not recognized, address not present, address not listed, address couldn t be found,
        addressee unknown, account does not exist, account doesn t exist, account not found,
        account that you tried to reach does not exist, account you tried to reach does not exist,
        undeliverable address, undeliverable recipient, unroutable address, unrouteable, not a valid user,
        not a valid recipient, not a valid email, not a valid address, destinataire invalide, destinataire inconnu,
        utilisateur inconnu, adresse inconnue, adresse invalide, empfänger unbekannt, empfaenger unbekannt,
        benutzer unbekannt, unbekannter benutzer, usuario desconocido, usuario no existe, utente sconosciuto,
        usuario desconhecido, non existent user, nonexistent user, nonexistent mailbox, non existent mailbox,
        nonexistent recipient, no one here by that name, does not exist here, doesn t exist here,
        bad destination mailbox, cannot find your recipient, unable to find recipient, ldap lookup found no,
        that account is not here, user doesn t exist, user does not exist, doesn t have an account,
        not listed in domino, in relay recipient table, in virtual mailbox table, in local recipient table,
        in virtual alias table, exrecipnotfound, not listed in public name, user doesn t have a, user does not have a,
        does not have an account, not a member of domain, not user of this server
    """,
    "policy_refused": """
        local policy, policy reasons, policy violation, policy restriction, policy reject, security policy,
        security policies, administrative prohibition, administratively, prohibited by, due to policy
    """,
}

LIKELY_CODES: Final = {
    "1.1": "unknown_address",
    "1.2": "domain_not_found",
    "1.3": "bad_address",
    "1.6": "moved_address",
    "1.7": "sender_rejected",
    "1.8": "sender_rejected",
    "1.10": "unknown_address",  # RFC 7505 means a null MX by it, Microsoft that there is no such recipient
    "2.1": "disabled_address",
    "3.1": "destination_trouble",
    "3.2": "destination_trouble",
    "3.3": "extension_missing",  # Exchange uses it for commands that it does not know
    "4.7": "destination_unreachable",
    "7.2": "sender_not_allowed",
    "7.8": "login_required",
    "7.12": "sender_not_allowed",  # Microsoft, as the five below
    "7.124": "sender_not_allowed",
    "7.133": "sender_not_allowed",
    "7.134": "sender_not_allowed",
    "7.135": "sender_not_allowed",
    "7.136": "sender_not_allowed",
    "7.23": "not_authenticated",  # RFC 7372: SPF; Google means the reverse name by it
    "7.27": "sender_rejected",  # RFC 7505: the sender's domain has a null MX; Google means SPF by it
    "7.29": "not_authenticated",  # the registry: ARC; Google means TLS by it
    "7.30": "encryption_required",  # RFC 8689; Google means DKIM by it
    "7.501": "low_reputation",  # Microsoft, as the two below
    "7.502": "low_reputation",
    "7.503": "low_reputation",
}

VAGUE_PHRASES: Final = {
    "spam_suspected": """
        spam, bulk mail
    """,
    "mailbox_full": """
        storage allocation, quota, no space, insufficient space
    """,
    "mailbox_unavailable": """
        mailbox unavailable, mailbox not available, mailbox is unavailable, mailbox temporarily,
        mailbox is not available, account not available, account is unavailable, account is temporarily,
        unverified address, address verification, recipient temporarily, user temporarily, mailbox busy,
        unable to verify recipient, cannot verify recipient, recipient verif, recipient unavailable, account is locked,
        mailbox is locked, mailbox for this user is locked, mailbox locked, account locked,
        recipient cannot be verified, currently unavailable
    """,
    "destination_trouble": """
        local error, internal error, internal server error, system error, server error, configuration error,
        temporary lookup failure, lookup failure, dns lookup, temporary failure, temporary error, temporary problem,
        technical, maintenance, shutting down, service unavailable, service not available, service is unavailable,
        service temporarily, system not accepting, system storage, queue file write, out of memory, unable to connect,
        database, ldap, not currently accepting, timeout, timed out
    """,
    "policy_refused": """
        policy, access denied, not allowed, not permitted, not authorized, not authorised, denied, forbidden,
        prohibited, blocked, banned
    """,
    "command_refused": """
        no valid recipient
    """,
}

SUBJECTS: Final = {
    "1": "mailbox_unavailable",
    "2": "mailbox_unavailable",
    "3": "destination_trouble",
    "4": "destination_unreachable",
    "5": "command_refused",
    "6": "bad_format",
    "7": "policy_refused",
}

BASIC_CODES: Final = {
    421: "destination_trouble",
    450: "mailbox_unavailable",
    451: "destination_trouble",
    452: "destination_trouble",
    454: "destination_trouble",
    455: "command_refused",
    500: "command_refused",
    501: "command_refused",
    502: "command_refused",
    503: "command_refused",
    504: "command_refused",
    521: "no_mail_service",  # RFC 7504
    530: "login_required",
    551: "moved_address",
    552: "mailbox_full",
    555: "command_refused",
    556: "null_mx",  # RFC 7504
}
