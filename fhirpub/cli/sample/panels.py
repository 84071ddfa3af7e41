"""What is examined: blood counts, blood chemistry, cultures of urine and X-rays of the chest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from fhirpub.cli.sample.results import Measured, Resource, interpretation, observation

_SYSTEM = "https://sample.example/results"
_DEVIATING = 0.15
"""The share of values that disease shifts by up to as much as the range is wide."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What an examination found: its results, as Observations and as lines, and a conclusion."""

    conclusion: str
    results: tuple[Resource, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """An examination: how HL7 and LOINC classify it, its specimen, and what finds its results.

    ``minutes`` are the least and the most from the specimen to the report.
    """

    category: str
    loinc: str
    text: str
    specimen: str
    minutes: tuple[int, int]
    find: Callable[[Random, Resource], Findings]


@dataclass(frozen=True, slots=True)
class _Analyte:
    """What is measured: how it is named, its reference range, and its number of decimals."""

    id: str
    loinc: str
    text: str
    unit: str
    low: float
    high: float
    decimals: int

    def drawn(self, random: Random) -> Measured:
        """Return a value, most often within the range."""
        width = self.high - self.low
        value = random.gauss((self.low + self.high) / 2, width / 6)
        if random.random() < _DEVIATING:
            value += random.choice((-1, 1)) * width * random.uniform(0.4, 1)
        return self.measured(max(value, self.low / 4))

    def measured(self, value: float) -> Measured:
        """Return a value in the decimals in which it is reported."""
        value = round(value, self.decimals) if self.decimals else round(value)
        return Measured(self.id, self.loinc, self.text, value, self.unit, self.low, self.high)


_HB = _Analyte("hb", "718-7", "Hemoglobin", "g/dL", 12.0, 16.5, 1)
_MCV = _Analyte("mcv", "787-2", "Mean corpuscular volume", "fL", 80.0, 100.0, 1)
_MCHC = _Analyte("mchc", "786-4", "Mean corpuscular hemoglobin concentration", "g/dL", 32, 36, 1)
_HCT = _Analyte("hct", "4544-3", "Hematocrit", "%", 36.0, 50.0, 1)
_RBC = _Analyte("rbc", "789-8", "Erythrocytes", "10*6/uL", 3.8, 5.8, 2)
_MCH = _Analyte("mch", "785-6", "Mean corpuscular hemoglobin", "pg", 27.0, 33.0, 1)
_WBC = _Analyte("wbc", "6690-2", "Leukocytes", "10*3/uL", 4.0, 11.0, 1)
_NEUT = _Analyte("neut", "751-8", "Neutrophils", "10*3/uL", 2.0, 7.5, 1)
_LYMPH = _Analyte("lymph", "731-0", "Lymphocytes", "10*3/uL", 1.0, 4.0, 1)
_PLT = _Analyte("plt", "777-3", "Platelets", "10*3/uL", 150, 400, 0)
_CHEMISTRY = (
    _Analyte("na", "2951-2", "Sodium", "mmol/L", 135, 145, 0),
    _Analyte("k", "2823-3", "Potassium", "mmol/L", 3.5, 5.1, 1),
    _Analyte("creat", "2160-0", "Creatinine", "mg/dL", 0.6, 1.2, 2),
    _Analyte("glu", "2345-7", "Glucose", "mg/dL", 70, 105, 0),
    _Analyte("alt", "1742-6", "Alanine aminotransferase", "U/L", 7, 45, 0),
    _Analyte("ast", "1920-8", "Aspartate aminotransferase", "U/L", 8, 40, 0),
    _Analyte("bili", "1975-2", "Bilirubin", "mg/dL", 0.2, 1.2, 1),
    _Analyte("alb", "1751-7", "Albumin", "g/dL", 3.5, 5.2, 1),
    _Analyte("chol", "2093-3", "Cholesterol", "mg/dL", 120, 200, 0),
)


def _blood_count(random: Random, report: Resource) -> Findings:
    """Measure what is independent, and compute the rest from it as analyzers do."""
    hb, mcv, mchc, wbc = (one.drawn(random) for one in (_HB, _MCV, _MCHC, _WBC))
    hct = _HCT.measured(hb.value / mchc.value * 100)
    rbc = _RBC.measured(hct.value / mcv.value * 10)
    mch = _MCH.measured(hb.value / rbc.value * 10)
    neutrophils = random.uniform(0.45, 0.7)
    neut = _NEUT.measured(wbc.value * neutrophils)
    lymph = _LYMPH.measured(wbc.value * random.uniform(0.2, 0.92 - neutrophils))
    plt = _PLT.drawn(random)
    return _measured(report, (hb, hct, rbc, mcv, mch, mchc, wbc, neut, lymph, plt))


def _chemistry(random: Random, report: Resource) -> Findings:
    return _measured(report, [one.drawn(random) for one in _CHEMISTRY])


def _measured(report: Resource, values: Sequence[Measured]) -> Findings:
    return Findings(
        conclusion=conclusion_of(values),
        results=tuple(
            _result(one.id, one.loinc, one.text, report) | one.elements() for one in values
        ),
        lines=tuple(map(line_of, values)),
    )


def conclusion_of(values: Sequence[Measured]) -> str:
    """Return what a physician reads first: what is outside of its range."""
    words = {"L": "low", "H": "high"}
    outside = [f"{one.text} {words[one.interpretation]}" for one in values if one.interpretation]
    return f"{', '.join(outside)}." if outside else "All values within the reference ranges."


def line_of(value: Measured) -> str:
    """Return a value as a line of a table."""
    limits = f"{value.low:g} - {value.high:g}"
    return f"{value.text:<43}{value.value:>9g} {value.unit:<9}{value.interpretation:<3}{limits}"


_BACTERIA = (
    ("Escherichia coli", 5),
    ("Klebsiella pneumoniae", 2),
    ("Proteus mirabilis", 1),
    ("Enterococcus faecalis", 1),
)
_ANTIBIOTICS = (
    ("cip", "18906-8", "Ciprofloxacin"),
    ("sxt", "18998-5", "Trimethoprim and sulfamethoxazole"),
    ("nit", "18955-5", "Nitrofurantoin"),
    ("amc", "18862-3", "Amoxicillin and clavulanate"),
)
_NO_GROWTH = "No growth"


def _urine_culture(random: Random, report: Resource) -> Findings:
    if random.random() < 0.6:
        line = f"Culture: {_NO_GROWTH.lower()}"
        return Findings("No growth after 48 hours.", (_identified(_NO_GROWTH, report),), (line,))
    (name,) = random.choices([one for one, _ in _BACTERIA], [often for _, often in _BACTERIA])
    results, lines = [_identified(name, report)], [f"Culture: {name}, > 10^5 CFU/mL"]
    resistant: list[str] = []
    for local_id, loinc, antibiotic in _ANTIBIOTICS:
        code, word = random.choices((("S", "Susceptible"), ("R", "Resistant")), (3, 1))[0]
        tested = _result(local_id, loinc, f"{antibiotic} susceptibility", report)
        meaning = {"interpretation": [interpretation(code)]}
        results.append({**tested, "valueCodeableConcept": {"text": word}, **meaning})
        lines.append(f"{antibiotic:<43}{word}")
        resistant += [antibiotic] * (code == "R")
    end = f", resistant to {' and to '.join(resistant)}" if resistant else ""
    return Findings(f"{name} in significant numbers{end}.", tuple(results), tuple(lines))


def _identified(text: str, report: Resource) -> Resource:
    """Return the result that names bacteria."""
    found = _result("bact", "630-4", "Bacteria identified in urine by culture", report)
    return {**found, "valueCodeableConcept": {"text": text}}


_CHEST = (
    "Heart and mediastinum of normal size. Lungs clear. No effusion.",
    "Consolidation in the right lower lobe, as in pneumonia. Small effusion.",
    "Hyperinflated lungs, as in chronic obstruction. No consolidation.",
    "Heart enlarged, vessels congested, effusions on both sides.",
)


def _chest(random: Random, _report: Resource) -> Findings:
    conclusion = random.choices(_CHEST, (6, 1, 2, 1))[0]
    return Findings(conclusion, lines=tuple(f"{one}." for one in conclusion[:-1].split(". ")))


def _result(local_id: str, loinc: str, text: str, report: Resource) -> Resource:
    return observation(local_id, loinc, text, report=report, system=_SYSTEM)


_HOURS, _DAYS = (40, 240), (48 * 60, 72 * 60)
PANELS = (
    Panel("HM", "58410-2", "Complete blood count", "Venous blood in EDTA", _HOURS, _blood_count),
    Panel("CH", "24323-8", "Blood chemistry", "Serum", _HOURS, _chemistry),
    Panel("MB", "630-4", "Urine culture", "Midstream urine", _DAYS, _urine_culture),
    Panel("RAD", "36643-5", "Chest X-ray, two views", "", _HOURS, _chest),
)
SHARES = (45, 30, 15, 10)
"""How often each of them is asked for, in percent."""
