"""Answers of the stand-in for gardener-admission-controller."""

from pergola.sandbox.simulated.admission import answer


def test_everything_is_admitted() -> None:
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "1", "operation": "CREATE"},
    }
    assert answer(review)["response"] == {"uid": "1", "allowed": True}


def test_authorization_is_left_to_other_authorizers() -> None:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": "someone"},
    }
    assert answer(review)["status"] == {"allowed": False}
