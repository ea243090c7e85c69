"""The static files: complete, and from no other host."""

import re

from pergola.dashboard.server.files import PAGE

INDEX = (PAGE / "index.html").read_text()
SIGN_IN = (PAGE / "sign-in-token.html").read_text()


def test_all_modules_are_preloaded() -> None:
    preloaded = set(re.findall(r'href="/assets/js/(\w+\.js)"', INDEX))
    started = set(re.findall(r'src="/assets/js/([\w-]+\.js)"', INDEX + SIGN_IN))
    assert preloaded | started == {path.name for path in (PAGE / "js").iterdir()}


def test_all_styles_are_linked() -> None:
    linked = set(re.findall(r'href="/assets/css/(\w+\.css)"', INDEX))
    assert linked == {path.name for path in (PAGE / "css").iterdir()}


def test_no_file_names_another_host_or_parses_markup() -> None:
    for path in PAGE.rglob("*.*"):
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, path
        for unsafe in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "style="):
            assert unsafe not in text, path


def test_files_are_small() -> None:
    for path in PAGE.rglob("*.*"):
        assert len(path.read_text().splitlines()) <= 250, path
