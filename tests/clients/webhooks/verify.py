"""Verifies requests of webhooks with stripe and standardwebhooks as a receiver would.

Standard input and output are as those of verify.mjs; PYTHONPATH holds the packages.
"""

import json
import sys

import standardwebhooks
import stripe

given = json.load(sys.stdin)


def accepts(verify):
    try:
        verify()
    except (stripe.SignatureVerificationError, standardwebhooks.WebhookVerificationError):
        return False
    return True


def verified(case):
    headers, body, secret = case["headers"], case["body"], case["secret"]
    signature = headers["rowgate-signature"]
    return {
        "stripe": accepts(lambda: stripe.WebhookSignature.verify_header(body, signature, secret, tolerance=300)),
        "standardwebhooks": accepts(lambda: standardwebhooks.Webhook(secret).verify(body.encode(), headers)),
    }


print(json.dumps([verified(case) for case in given["cases"]]))
