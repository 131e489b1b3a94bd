"""Two hundred labels that nobody should have to handle; a script that runs sets `pwned`."""

RUN = "window.pwned=1"
SEEDS = [
    "",
    f"<script>{RUN}</script>", f"</script><script>{RUN}</script>", f"<img src=x onerror={RUN}>",
    f"\"><img src=x onerror={RUN}>", f"'><svg onload={RUN}>", f"<svg/onload={RUN}>",
    f"<body onload={RUN}>", f"<iframe src=javascript:{RUN}>", f"<details open ontoggle={RUN}>",
    f"<style>*{{x:expression({RUN})}}</style>", "</style><h1>", "</title><h1>", "</textarea><h1>",
    "<!--", "-->", "<!--<script>", "]]>", "<![CDATA[", "<?php", "&lt;script&gt;", "&#60;b&#62;",
    "&amp;", "&", "<", ">", '"', "'", "`", "\\", "/", f"javascript:{RUN}", f"\" onclick=\"{RUN}",
    f"' onmouseover='{RUN}", f"x\" autofocus onfocus=\"{RUN}", "{{ 7*7 }}", "{% raw %}",
    "{{ self.__init__ }}", "${7*7}", "#{7*7}", "<%= 7*7 %>", "{{constructor.constructor('x')()}}",
    "{#", "#}", "\u2028", "\u2029", "\\u003cscript\\u003e", '","x":"', '"}]}', "\\", "\\\\", "\\n",
    "null", "NaN", "Infinity", "__proto__", "constructor", "toString", "undefined", "\0", "a\0b",
    "\x01\x02", "\x7f", "\x1b[31m", "\r\n", "\t", " ", "  x  ", "\u202eevil\u202c", "\u200f",
    "\u2066\u2069", "\u200b", "\ufeff", "\ud800", "\udfff", "\uffff", "\U0001f600", "\u0301" * 50,
    "مرحبا", "שלום", "列名", "ﬀ", "ß", "İ", "x" * 10_000, "<" * 10_000, "🙂" * 3000, "$x_1$",
    "$\\bad$", "\\frac{1}{2}", "%s", "%(x)s", "{0}", "{x!r}", "; DROP TABLE", "=cmd|' /C calc'!A0",
    "../../etc/passwd", "file:///etc/passwd", "http://127.0.0.1:9/x.png", "url(http://127.0.0.1:9)",
    "@import 'http://127.0.0.1:9/x.css'", "data:text/html,<script>", "#rows", "rows", "data",
]  # fmt: skip
HOSTILE = [*SEEDS, *(f"{i}{seed}" for i, seed in enumerate(SEEDS))][:200]
assert len(HOSTILE) == 200 and len({*HOSTILE}) >= 198
