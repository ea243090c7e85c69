#!/bin/sh
# Publish this release: the image and the charts to a registry, each signed.
#
#   ./publish.sh REGISTRY             registry.example/team: .../pergola, .../charts/operator, ...
#   ./publish.sh REGISTRY --no-sign   without signatures
#
# It needs crane, helm and, to sign, cosign; log in to the registry before. What is there already
# with the same content stays as it is, so a failed run can be repeated.
set -eu

fail() {
    echo "error: $1" >&2
    exit 1
}

need() {
    command -v "$1" >/dev/null || fail "$1 is not installed: $2"
}

[ $# -ge 1 ] || fail "name the registry, such as registry.example/team"
registry=${1%/}
sign=yes
[ "${2:-}" != --no-sign ] || sign=no
cd "$(dirname "$0")"

need crane "https://github.com/google/go-containerregistry"
need helm "https://helm.sh"
[ "$sign" = no ] || need cosign "https://github.com/sigstore/cosign, or give --no-sign"
sha256sum --check --quiet SHA256SUMS || fail "files of the release were changed"

set -- pergola-*-image.tar
[ -f "$1" ] || fail "this release has no image"
version=${1#pergola-}
version=${version%-image.tar}
layout=$(mktemp -d)
trap 'rm -rf "$layout"' EXIT
tar -xf "$1" -C "$layout"
image=$registry/pergola
crane push "$layout" "$image:$version" >/dev/null
digest=$(crane digest "$image:$version")
echo "$image:$version@$digest"
[ "$sign" = no ] || cosign sign --yes "$image@$digest"

for chart in *.tgz; do
    name=${chart%-"$version".tgz}
    pushed=$(helm push "$chart" "oci://$registry/charts" 2>&1) || fail "helm push $chart: $pushed"
    digest=$(crane digest "$registry/charts/$name:$version")
    echo "$registry/charts/$name:$version@$digest"
    [ "$sign" = no ] || cosign sign --yes "$registry/charts/$name@$digest"
done

[ "$sign" = no ] || cosign sign-blob --yes --bundle SHA256SUMS.bundle SHA256SUMS
