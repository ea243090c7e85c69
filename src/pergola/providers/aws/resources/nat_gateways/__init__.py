"""The NAT gateway of a zone (spec 30 §3.5, §9.2, §13).

facts     what a gateway's description says
ensure    the steps that create it, and replace one with another elastic IP
waiting   the step that waits for those of all zones with one request
deletion  the steps that delete them; all zones are polled together
"""
