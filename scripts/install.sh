#!/bin/bash
# Installs what is missing for one purpose, and nothing else: install.sh demo|test|bench
#
# Asks nothing. Debian packages through apt (as root, or with a sudo that asks no password), the test runner through
# cargo, PySide6 for the Qt 6 fixture through pip, in a folder of its own. When all is there it only looks, in well
# under a second.
set -eu
cd "$(dirname "$(readlink -f "$0")")/.."

say() { printf 'install: %s\n' "$*" >&2; }
fail() {
    say "$*"
    exit 1
}

purpose=${1:-}
case $purpose in demo | test | bench) ;; *) fail "usage: scripts/install.sh demo|test|bench" ;; esac

# What each purpose needs. Without recommended packages, so all that is used is named.
demo_packages() {
    cat <<'LIST'
# building
gcc
libc6-dev
# the private desktop and its buses
at-spi2-core
dbus
dbus-bin
dbus-daemon
dconf-gsettings-backend
libglib2.0-bin
procps
util-linux
xvfb
openbox
x11-utils
# the application and what it shows
gnome-calculator
adwaita-icon-theme
fonts-dejavu-core
# the second reader, and JSON
python3
python3-gi
gir1.2-atspi-2.0
LIST
}

test_packages() {
    demo_packages
    cat desktops/x11.packages.txt
    cat <<'LIST'
# the second notification service; the first comes with the desktop
xfce4-notifyd
# another window manager, keyboard layouts, what is typed into
metacity
xfwm4
x11-xkb-utils
xterm
python3-pyqt5
# GTK 3, GTK 4, Qt 5
gedit
gtk-3-examples
gtk-4-examples
kcalc
zenity
gir1.2-gtk-3.0
gir1.2-gtk-4.0
# browsers and office
chromium
firefox-esr
libreoffice-calc
libreoffice-writer
libreoffice-gtk3
# what PySide6's windows are drawn with
python3-venv
libegl1
libgl1
libxkbcommon-x11-0
libxcb-cursor0
libxcb-icccm4
libxcb-image0
libxcb-keysyms1
libxcb-render-util0
libxcb-shape0
libxcb-xkb1
libfontconfig1
LIST
}

packages() {
    case $purpose in
    demo) demo_packages ;;
    test | bench) test_packages ;;
    esac | sed 's/#.*//' | tr -s ' \t' '\n' | sed '/^$/d' | sort -u
}

missing_packages() {
    local all=$1
    # One call for all. A package that another one provides under a newer name is there, too.
    # shellcheck disable=SC2086
    comm -23 <(printf '%s\n' $all) \
        <(dpkg-query -W -f '${db:Status-Status} ${Package}\n${db:Status-Status} ${Provides}\n' 2>/dev/null |
            sed -n 's/^installed //p' | tr -s ', ' '\n' | sort -u)
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        sudo -n "$@"
    else
        fail "these packages are missing and can only be installed by root (no sudo without a password here). As root: apt-get install --no-install-recommends $missing"
    fi
}

install_packages() {
    command -v dpkg-query >/dev/null || fail "this is not a Debian or Ubuntu system; install by hand: $(packages | tr '\n' ' ')"
    missing=$(missing_packages "$(packages)" | tr '\n' ' ')
    [ -n "${missing// /}" ] || return 0
    say "Debian packages: $missing"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 update ||
        fail "apt-get update failed"
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
        install --no-install-recommends $missing </dev/null >/dev/null ||
        fail "apt-get could not install: $missing"
}

# True when version $1 is at least $2.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

check_rust() {
    local wanted have
    wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
    if ! command -v cargo >/dev/null && [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ]; then
        fail "cargo is in ${CARGO_HOME:-$HOME/.cargo}/bin, which is not in PATH"
    fi
    if ! command -v cargo >/dev/null && apt-cache policy rustup 2>/dev/null | grep -q 'Candidate: [0-9]'; then
        say "Rust, through Debian's rustup"
        missing=rustup
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 install \
            --no-install-recommends rustup </dev/null >/dev/null || fail "apt-get could not install rustup"
        rustup toolchain install stable --profile minimal --component clippy --component rustfmt >&2 ||
            fail "rustup could not install a toolchain"
    fi
    command -v cargo >/dev/null ||
        fail "Rust $wanted or newer is needed, and this system's packages have none: install it with rustup (https://rustup.rs), then run this again"
    have=$(rustc --version | cut -d ' ' -f 2)
    at_least "$have" "$wanted" ||
        fail "Rust $wanted or newer is needed, this is $have: update it (rustup update), then run this again"
}

check_nextest() {
    command -v cargo-nextest >/dev/null && return 0
    say "cargo-nextest, the test runner (built once, some minutes)"
    cargo install --quiet --locked cargo-nextest || fail "cargo-nextest could not be installed"
}

# The Qt 6 fixture's Python. The system's python3, since another one may be first in PATH.
install_pyside() {
    local version=6.12.0 venv=${XDG_CACHE_HOME:-$HOME/.cache}/agent-desktop-test/venv
    [ -e "$venv/pyside6-$version" ] && [ -x "$venv/bin/python" ] && return 0
    say "PySide6-Essentials $version, in $venv"
    /usr/bin/python3 -m venv --clear "$venv" || fail "python3 cannot make a venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "PySide6-Essentials==$version" ||
        fail "pip could not install PySide6-Essentials $version"
    "$venv/bin/python" -c 'import PySide6.QtWidgets' || fail "PySide6 was installed and cannot be loaded"
    touch "$venv/pyside6-$version"
}

install_packages
check_rust
case $purpose in
test)
    check_nextest
    install_pyside
    ;;
bench) install_pyside ;;
esac
