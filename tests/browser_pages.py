"""Pages that the browser tools are tried on."""

from scripted_server.media import png
from web_site import Answer, Asked, Drip, Site, answer, redirect

HOME = """<title>Home</title><h1>Welcome</h1><p>Some plain words.</p><a href=/form>To the form</a>
<a href=/second>To the second page</a><img src=/red.png alt="a red square"><img src=/red.png alt=again>"""
FORM = """<title>Form</title><form action=/submitted><label>Name <input name=name value=old></label>
<label>Kind <select name=kind><option>small<option>large</select></label>
<label><input type=checkbox name=agree>Agree</label><button>Send</button><button disabled>Locked</button></form>"""
LIST = """<title>List</title><ul id=list></ul><script>
function more() { for (let i = 0; i < 60; i++) list.append(Object.assign(document.createElement('li'),
  {textContent: 'item ' + (list.children.length + 1)})); }
more(); addEventListener('scroll', () => { if (scrollY + innerHeight >= document.body.scrollHeight - 5) more(); });
</script>"""
DIALOGS = """<title>Dialogs</title><button onclick="alert('Careful'); this.textContent = 'alerted'">Alert</button>
<button onclick="this.textContent = confirm('Really?') ? 'yes' : 'no'">Confirm</button>
<button onclick="this.textContent = prompt('Your name?', 'Ada')">Prompt</button>"""
FRAMES = """<title>Frames</title><h1>Outside</h1><iframe src=/inner></iframe>
<iframe srcdoc="<iframe src=/inner></iframe>"></iframe>"""
INNER = """<button onclick="this.textContent = 'pressed'">Inside</button><img src=/inner.png>"""
POPUPS = """<title>Opener</title><a href=/second target=_blank>In a new tab</a>
<button onclick="for (let i = 0; i < 12; i++) window.open('/second')">Many</button>
<button onclick="window.close()">Close</button>"""
CONSOLE = """<title>Console</title><script>console.log('hello', {a: 1}); console.error('bad thing');
setTimeout(() => undefinedFunction(), 0)</script><button onclick="console.log('clicked')">Log</button>"""
SPIN = "<title>Spin</title><button onclick='while (true);'>Spin</button>"
HOG = """<title>Hog</title><button onclick="window.kept = []; setInterval(() => {
  for (let i = 0; i < 8; i++) kept.push(new Uint8Array(1 << 24).fill(1)) }, 20)">Eat</button>"""
COVERED = """<title>Covered</title><button>Below</button>
<div id=cover style="position:fixed;inset:0;background:#fff"></div>"""
KEYS = """<title>Keys</title><input aria-label=Field autofocus onkeydown="document.title = event.key">"""
REDIRECTING = "<title>First</title><script>location.replace('/second')</script>"
HALF = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>Half</title><h1>The first half</h1>" + b" " * 2000
ATTACHED = "attachment; filename="
ENDLESS = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Disposition: attachment\r\n\r\n"


def submitted(asked: Asked) -> Answer:
    return answer(f"<title>Sent</title><p>{asked.path.partition('?')[2].replace('&', ', ')}</p>")


def fill(site: Site) -> None:
    """Give a site all pages."""
    pages = {"/": HOME, "/form": FORM, "/list": LIST, "/dialogs": DIALOGS, "/frames": FRAMES, "/inner": INNER}
    pages |= {"/popups": POPUPS, "/console": CONSOLE, "/spin": SPIN, "/hog": HOG, "/covered": COVERED}
    pages |= {"/keys": KEYS, "/redirecting": REDIRECTING, "/second": "<title>Second</title><h1>Second page</h1>"}
    pages["/long"] = "<title>Long</title>" + "<p>word</p>" * 1000
    pages["/downloads"] = "<title>Downloads</title><a href=/file>File</a> <a href=/endless>Endless</a>"
    site.answers |= {path: answer(page) for path, page in pages.items()}
    site.answers["/submitted"] = submitted
    site.answers["/red.png"] = site.answers["/inner.png"] = answer(png("red"), "image/png")
    site.answers["/never"] = None
    site.answers["/half"] = Drip(HALF, b"", 3600)
    site.answers["/empty"] = answer(status="204 No Content")
    site.answers["/away"] = redirect("http://169.254.169.254/latest/meta-data/")
    named = {"Content_Disposition": ATTACHED + '"../../.bad na/me.txt"'}
    site.answers["/file"] = answer(b"file content", "application/octet-stream", **named)
    site.answers["/endless"] = Drip(ENDLESS, b"x" * 100_000, 0.01)
