"""Mail as common programs write it, for tests that read it. Names and addresses are invented."""


def _crlf(text: str) -> bytes:
    return text.removeprefix("\n").replace("\n", "\r\n").encode()


DJANGO = _crlf("""
Content-Type: multipart/alternative;
 boundary="===============8373902842113049881=="
MIME-Version: 1.0
Subject: =?utf-8?b?V2lsbGtvbW1lbiwgSsO8cmdlbg==?=
From: Shop <shop@example.com>
To: juergen@example.org
Date: Mon, 06 May 2024 08:30:00 -0000
Message-ID: <171498420012.4711.1234567890123456789@web-1>

--===============8373902842113049881==
Content-Type: text/plain; charset="utf-8"
MIME-Version: 1.0
Content-Transfer-Encoding: 8bit

Schön, dass du da bist.
--===============8373902842113049881==
Content-Type: text/html; charset="utf-8"
MIME-Version: 1.0
Content-Transfer-Encoding: 8bit

<p>Schön, dass du da bist.</p>
--===============8373902842113049881==--
""")

NODEMAILER = _crlf("""
From: "Shop, Bonn" <shop@example.com>
To: bo@example.org, =?UTF-8?Q?J=C3=BCrgen?= <juergen@example.org>
Subject: =?UTF-8?Q?Rechnung_f=C3=BCr_Mai?=
Message-ID: <0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9@example.com>
Date: Mon, 06 May 2024 08:30:00 +0000
MIME-Version: 1.0
Content-Type: multipart/mixed;
 boundary="--_NmP-1a2b3c4d5e6f7081-Part_1"

----_NmP-1a2b3c4d5e6f7081-Part_1
Content-Type: multipart/alternative;
 boundary="--_NmP-1a2b3c4d5e6f7081-Part_2"

----_NmP-1a2b3c4d5e6f7081-Part_2
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

F=C3=BCr Mai.
----_NmP-1a2b3c4d5e6f7081-Part_2
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: quoted-printable

<p>F=C3=BCr Mai.</p>
----_NmP-1a2b3c4d5e6f7081-Part_2--

----_NmP-1a2b3c4d5e6f7081-Part_1
Content-Type: application/pdf; name=mai.pdf
Content-Transfer-Encoding: base64
Content-Disposition: attachment; filename=mai.pdf

JVBERi0xLjQK
----_NmP-1a2b3c4d5e6f7081-Part_1--
""")

PHPMAILER = _crlf("""
Date: Mon, 6 May 2024 08:30:00 +0000
To: Bo Example <bo@example.org>
From: Shop <shop@example.com>
Reply-To: Help <help@example.com>
Subject: Your order
Message-ID: <kq3nYw1sZ0@shop.example.com>
X-Mailer: PHPMailer 6.9.1 (https://github.com/PHPMailer/PHPMailer)
MIME-Version: 1.0
Content-Type: multipart/alternative;
 boundary="b1=_kq3nYw1sZ0abcdefghijklmnop"
Content-Transfer-Encoding: 8bit

--b1=_kq3nYw1sZ0abcdefghijklmnop
Content-Type: text/plain; charset=us-ascii

Thank you.

--b1=_kq3nYw1sZ0abcdefghijklmnop
Content-Type: text/html; charset=us-ascii

<p>Thank you.</p>


--b1=_kq3nYw1sZ0abcdefghijklmnop--
""")

OUTLOOK = _crlf("""
From: "Ada King" <ada@example.com>
To: "'Bo Example'" <bo@example.org>,
\t"Smith, Jo" <jo@example.org>
References: <1@example.org>
In-Reply-To: <1@example.org>
Subject: RE: =?iso-8859-1?Q?Gr=FC=DFe_aus_dem_B=FCro_und_noch_ein_langer_Betreff,_de?=
\t=?iso-8859-1?Q?r_gefaltet_wird?=
Date: Mon, 6 May 2024 10:30:00 +0200
Message-ID: <000001da9f8f$12345678$369d0368$@example.com>
MIME-Version: 1.0
Content-Type: text/plain;
\tcharset="iso-8859-1"
Content-Transfer-Encoding: quoted-printable
X-Mailer: Microsoft Outlook 16.0
Thread-Index: AdqfjzXxYzAbCdEfGhIjKlMnOpQrSt==
Content-Language: de

Gr=FC=DFe
""")

POSTFIX = _crlf("""
Received: by relay.example.com (Postfix)
\tid 4VY0Xk2y9sz3wXQ; Mon,  6 May 2024 08:30:01 +0000 (UTC)
Delivered-To: root@example.com
Received: from db.example.com (db.example.com [192.0.2.7])
\t(using TLSv1.3 with cipher TLS_AES_256_GCM_SHA384 (256/256 bits))
\t(No client certificate requested)
\tby relay.example.com (Postfix) with ESMTPS id 4VY0Xk0hTLz3wXN
\tfor <root@example.com>; Mon,  6 May 2024 08:30:00 +0000 (UTC)
Received: by db.example.com (Postfix, from userid 0)
\tid 4VY0Xj6y1Lz9rTT; Mon,  6 May 2024 08:30:00 +0000 (UTC)
From: root@example.com (Cron Daemon)
To: root@example.com
Subject: Cron <root@db> /usr/local/bin/backup
Content-Type: text/plain; charset=UTF-8
Auto-Submitted: auto-generated
X-Cron-Env: <SHELL=/bin/sh>
X-Empty:
Message-Id: <20240506083000.4VY0Xj6y1Lz9rTT@db.example.com>
Date: Mon,  6 May 2024 08:30:00 +0000 (UTC)

done
""")

SCRIPT = _crlf("""
From: Büro Köln <buero@example.com>
To: Jürgen <juergen@example.org>
Subject: Grüße aus Köln

Grüße
""")

MAIL = {
    "django": DJANGO,
    "nodemailer": NODEMAILER,
    "phpmailer": PHPMAILER,
    "outlook": OUTLOOK,
    "postfix": POSTFIX,
    "script": SCRIPT,
}
