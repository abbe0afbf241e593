"""The way of an email, read from the sources."""

from bench import path


def test_email_is_followed_into_the_event_loop_and_to_the_provider() -> None:
    steps = {step.name: step for step in path.steps_of_an_email()}
    send = steps["send"]
    assert send.threads["providers.sendgrid.provider.SendGrid.send_many"] == {path.LOOP}
    assert path.POOL in send.threads["providers.sendgrid.provider.SendGrid._download"]
    assert "delivery.sending.InFlight.submit" in send.forms
    assert all(path.LOOP not in threads for threads in steps["claim"].threads.values())
    found = {form for step in steps.values() for some in step.forms.values() for form in some}
    assert found == set(path.FORMS)
