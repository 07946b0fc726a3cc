"""Nobody is trusted with the records: people, or their devices, randomize what they report.

Mechanisms that a frontier is drawn for (`RandomizedResponse`, `UnaryEncoding`, `BitFlip`, `OneBitMean`), and what
devices and agencies do: surveys that draw reports exactly and estimate from them.
"""

from dualmandate.mechanism.local.bit_flip import BitFlip, BitFlipSurvey
from dualmandate.mechanism.local.coins import device_words, simulated_words
from dualmandate.mechanism.local.count_mean_sketch import CountMeanSketch, Sketch
from dualmandate.mechanism.local.memoized import Devices, MemoizedMean
from dualmandate.mechanism.local.one_bit_mean import OneBitMean, OneBitSurvey
from dualmandate.mechanism.local.price import price_of_not_trusting_the_curator
from dualmandate.mechanism.local.randomized_response import RandomizedResponse, ResponseSurvey
from dualmandate.mechanism.local.rappor import Rappor, RapporCounts
from dualmandate.mechanism.local.rappor_decoding import WordCount, decode_reports
from dualmandate.mechanism.local.unary_encoding import UnaryEncoding, UnarySurvey

__all__ = [
    "BitFlip",
    "BitFlipSurvey",
    "CountMeanSketch",
    "Devices",
    "MemoizedMean",
    "OneBitMean",
    "OneBitSurvey",
    "RandomizedResponse",
    "Rappor",
    "RapporCounts",
    "ResponseSurvey",
    "Sketch",
    "UnaryEncoding",
    "UnarySurvey",
    "WordCount",
    "decode_reports",
    "device_words",
    "price_of_not_trusting_the_curator",
    "simulated_words",
]
