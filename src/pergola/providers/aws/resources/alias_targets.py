"""Hosts that alias records of Route 53 may point to, with their hosted zones. Pure.

AWS publishes the zones with the endpoints of each service. They never change, but new regions add
more: a host in an unlisted region gets a CNAME record. GovCloud has no alias targets.
"""

from typing import Final

from pergola.providers.aws.resources.record_sets import normal_name

_ABSENT: Final = "-"
_TABLE: Final = """
af-south-1 Z268VQBMOI5EKX Z203XCE67M25HM Z09302161J80N9A7UTP7U Z2DHW2332DAMTN
ap-east-1 Z3DQVH9N71FHZ0 Z12Y7K3UBGUAD1 Z2LIHJ7PKBEMWN Z3FD1VL90ND7K5
ap-east-2 Z02789141MW7T1WBU19PO Z09176273OC2HWIAUNYW Z09379811HWP0POAUWVN3 Z02909591O7FG9Q56HWB1
ap-northeast-1 Z14GRHDCWA56QT Z31USIVHYNEOWT Z2E726K9Y6RL4W Z1YSHQZHG15GKL
ap-northeast-2 ZWKZPGTI48KDX ZIBE1TIR4HY56 Z27UANNT0PRK1T Z20JF4UZKIW1U8
ap-northeast-3 Z5LXEXXYW11ES Z1GWIQ4HH19I5X Z376B5OMM2JZL2 -
ap-south-1 ZP97RAFLXTNZK ZVDDRBQ08TROA Z2KVTB3ZLFM7JR Z3VO1THU9YC4UR
ap-south-2 Z0173938T07WNTVAEPZN Z0711778386UTO08407HT Z0952991RWSF5AHIQDIY -
ap-southeast-1 Z1LMS91P8CMLE5 ZKVM4W9LS7TM Z18LLCSTV4NVNL ZL327KTPIQFUL
ap-southeast-2 Z1GM3OXH4ZPM65 ZCT6FZBF4DROD ZDK2GCRPAFKGO Z2RPCDW04V8134
ap-southeast-3 Z08888821HLRG5A9ZRTER Z01971771FYVNCOVWJU1G Z03881013RZ9BYYZO8N5W -
ap-southeast-4 Z09517862IB2WZLPXG76F Z01156963G8MIIL7X90IV Z07508191CO1RNBX3X3AU -
ap-southeast-5 Z06010284QMVVW7WO5J Z026317210H9ACVTRO6FB - -
ap-southeast-6 Z023301818UFJ50CIO0MV Z01392953RKV2Q3RBP0KU - -
ap-southeast-7 Z0390008CMBRTHFGWBCB Z054363131YWATEMWRG5L - -
ca-central-1 ZQSVJUPU6J1EY Z2EPGBW3API2WT ZRCXCF510Y6P9 Z19DQILCV0OWEC
ca-west-1 Z06473681N0SF6OS049SD Z02754302KBB00W2LKWZ9 - -
cn-north-1 Z1GDH35T77C1KE Z3QFB96KMJ7ED6 - -
cn-northwest-1 ZM7IZAIOVVDZF ZQEIKTCZ8352D - -
eu-central-1 Z215JYRZR1TBD5 Z3F0SRJ5LGBH90 Z273ZU8SZ5RJPC Z1U9ULNL0V5AJ3
eu-central-2 Z06391101F2ZOEP8P5EB3 Z02239872DOALSIDCX66S Z045369019J4FUQ4S272E -
eu-north-1 Z23TAZ6LKFMNIO Z1UDT6IFJ4EJM Z3OWWK6JFDEDGC Z3UWIKFBOOGXPP
eu-south-1 Z3ULH7SSC9OV64 Z23146JA1KNAFP Z2A5FDNRLY7KZG Z3BT4WSQ9TDYZV
eu-south-2 Z0956581394HF5D5LXGAP Z1011216NVTVYADP1SSV Z014396544HENR57XQCJ Z02499852UI5HEQ5JVWX3
eu-west-1 Z32O12XQLNTSW2 Z2IFOLAFXWLO4F Z38GZ743OKFT7T ZLY8HYME6SFDD
eu-west-2 ZHURV8PSTC4K8 ZD4D7Y8KGAS4G Z7K1066E3PUKB ZJ5UAJN8Y3Z2Q
eu-west-3 Z3Q77PNBQS71R4 Z1CMS0P5QUZ6D5 Z1DWHTMFP0WECP Z3KY65QIEKYHQQ
il-central-1 Z09170902867EHPV2DABU Z0313266YDI6ZRHTGQY4 - -
me-central-1 Z08230872XQRWHG2XF6I Z00282643NTTLPANJJG2P Z07122992YCEUCB9A9570 Z08780021BKYYY8U0YHTV
me-south-1 ZS929ML54UICD Z3QSRYVP46NYYV Z3B95P3VBGEQGY Z20ZBPC0SS8806
mx-central-1 Z023552324OKD1BB28BH5 Z02031231H3ID6HYJ9A7U - -
sa-east-1 Z2P70J7HTTTPLU ZTK26PT1VY4CU Z2LXUWEVLCVZIB ZCMLWB8V5SYIT
us-east-1 Z35SXDOTRQ7X7K Z26RNL4JYFTOTI Z7HUB22UULQXV Z1UJRXOUMOOFQ8
us-east-2 Z3AADJGX6KTTL2 ZLMOA37VPKANP ZC8PG0KIFKBRI ZOJJZC49E0EPZ
us-west-1 Z368ELLRRE2KJ0 Z24FKFUX50B4VW Z12I86A8N7VCZO Z2MUQ32089INYE
us-west-2 Z1H1FL5HABSF5 Z18D5FSROUN65G Z1YSA3EXCYUU9Z Z2OJLYMUO9EFXC
"""
"""Region, and the zones of application and classic load balancers, network load balancers,
interface endpoints of VPCs, and regional endpoints of API Gateway."""
_SUFFIXES: Final = (
    "{region}.elb.{domain}",
    "elb.{region}.{domain}",
    "{region}.vpce.{domain}",
    "execute-api.{region}.{domain}",
)
CLOUDFRONT: Final = "Z2FDTNDATAQYW2"
"""The zone of distributions, and of edge-optimized endpoints of API Gateway."""
_GLOBAL: Final = {"awsglobalaccelerator.com": "Z2BJ6XQ5FK7U4H", "cloudfront.net": CLOUDFRONT}
_CHINA: Final = "cn-"


def _read(row: str) -> dict[str, str]:
    region, *zones = row.split()
    domain = "amazonaws.com.cn" if region.startswith(_CHINA) else "amazonaws.com"
    return {
        suffix.format(region=region, domain=domain): zone
        for suffix, zone in zip(_SUFFIXES, zones, strict=True)
        if zone != _ABSENT
    }


ALIAS_ZONES: Final = {
    suffix: zone
    for zones in (*map(_read, _TABLE.strip().splitlines()), _GLOBAL)
    for suffix, zone in zones.items()
}
"""Hosted zones by the suffix of host names."""


def alias_zone(host: str) -> str:
    """Return the hosted zone of a host that alias records may point to; empty for others."""
    labels = normal_name(host).split(".")
    suffixes = (".".join(labels[start:]) for start in range(1, len(labels)))
    return next((ALIAS_ZONES[each] for each in suffixes if each in ALIAS_ZONES), "")
