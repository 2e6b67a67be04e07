# Sourced by the other scripts: goes to the project's root and knows how to make .venv there.
# Needs nothing but Python 3.11 or newer; no compiler, for it takes ready-built packages only.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PYTHONS=(python3 python3.14 python3.13 python3.12 python3.11)

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

die() {
    say "$*"
    exit 1
}

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    local candidate
    for candidate in "${PYTHONS[@]}"; do
        if is_new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    die "needs Python 3.11 or newer, and none of these is: ${PYTHONS[*]}"
}

# A stamp holds what was installed: as long as pyproject.toml, the lock files and the folder stay the same, so does the
# environment.
fingerprint() { printf '%s %s\n' "$(cat pyproject.toml scripts/requirements*.txt | cksum)" "$PWD"; }

is_installed() {
    local stamp
    for stamp in "$@"; do
        [[ -f .venv/.installed-$stamp && $(<".venv/.installed-$stamp") == "$(fingerprint)" ]] && return
    done
    return 1
}

# make_venv [FOLDER]
make_venv() {
    local venv=${1:-.venv} python
    [[ -x $venv/bin/python ]] && is_new_enough "$venv/bin/python" && return
    python=$(find_python)
    say "making $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv" || die "'$python -m venv' failed; on Debian and Ubuntu: apt install python3-venv"
}

# pip_install FOLDER WHAT...
pip_install() {
    local venv=$1
    shift
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: "$@" ||
        die "the installation into $venv failed"
}

# install_locked FOLDER LOCK
# The packages of a lock file. pip refuses a file with another hash, and a dependency that the lock does not name.
install_locked() { pip_install "$1" --require-hashes --requirement "scripts/$2"; }

# install STAMP LOCK
# The lock has the build backend too, so that building the project needs no index.
install() {
    say "installing nsysdiag and the packages of scripts/$2 into .venv"
    install_locked .venv "$2"
    pip_install .venv --no-index --no-deps --no-build-isolation --editable .
    fingerprint >".venv/.installed-$1"
}

# What a user needs.
make_runtime_environment() {
    make_venv
    is_installed runtime dev || install runtime requirements.txt
}

# The same, and what the tests and checks need.
make_dev_environment() {
    make_venv
    is_installed dev || install dev requirements-dev.txt
}

# make_tools_environment NAME
# An environment of its own, .venv-NAME, with the packages of scripts/requirements-NAME.txt.
make_tools_environment() {
    make_venv ".venv-$1"
    install_locked ".venv-$1" "requirements-$1.txt"
}

# An environment of its own, .venv-lowest or .venv-newest, with the lowest versions that the bounds in pyproject.toml
# allow, or with the newest there are. Resolved anew each time, for there are newer ones every week.
make_resolved_environment() {
    local venv=.venv-$1 resolution
    case $1 in
        lowest) resolution=lowest-direct ;; # what those need in turn has bounds of others
        newest) resolution=highest ;;
    esac
    make_venv "$venv"
    make_tools_environment tools
    say "installing the $1 versions into $venv"
    .venv-tools/bin/uv pip install --quiet --python "$venv/bin/python" --upgrade --resolution "$resolution" \
        --only-binary :all: --editable '.[dev]' || die "the installation into $venv failed"
    .venv-tools/bin/uv pip tree --python "$venv/bin/python" --package nsysdiag --depth 1 >&2
}
