"""Exact noise: a function of a key and of a cell's place, drawn by inverting a certified distribution."""

from dualmandate.mechanism.noise.samplers import GaussianSampler, LaplaceSampler, Sampler, StaircaseSampler
from dualmandate.mechanism.noise.words import SAMPLER_VERSION, NoiseKey, subkey

__all__ = ["SAMPLER_VERSION", "GaussianSampler", "LaplaceSampler", "NoiseKey", "Sampler", "StaircaseSampler", "subkey"]
