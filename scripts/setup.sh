# Sourced by the scripts beside it: makes .venv, once and after every change of the requirements.
# prepare EXTRAS: "" to run the service, "[test,docs]" to test it and build its documentation.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
venv="$root/.venv"

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3.13 python3.12 python3.11 python3 python}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "Python 3.11 or newer is needed; PYTHON=/path/to/python names one." >&2
    return 1
}

# The packages next to fhirpub, each in a folder of its own.
beside=("$root"/*/pyproject.toml)
beside=("${beside[@]%/pyproject.toml}")

stamp_of() {
    { cat "$root/setup.py" "${beside[@]/%//pyproject.toml}" || true; ls "$root/plugins"; echo "$root"; } 2>/dev/null | cksum | tr ' ' '-'
}

prepare() {
    local extras="$1" python now
    now="$(stamp_of)"
    # An environment that can test the service can also run it.
    for known in "$extras" "[test,docs]"; do
        [ "$(cat "$venv/stamp$known" 2>/dev/null)" = "$now" ] && return
    done
    python="$(find_python)"
    echo "Setting up $venv (the first time takes a minute) ..." >&2
    # A first run that was interrupted leaves a python without pip.
    "$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$python" -m venv "$venv"
    local packages=(-e "$root$extras")
    if [ -n "$extras" ]; then
        for folder in "${beside[@]}"; do packages+=(-e "$folder"); done
    fi
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${packages[@]}"
    echo "$now" > "$venv/stamp$extras"
}
