"""Invented people of several languages: names, births and passports, always the same by number."""

# ruff: noqa: RUF001 - names are written with the letters of their languages

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

from fhirpub.cli.sample.results import HL7, Resource

_OLDEST, _YOUNGEST = timedelta(days=93 * 365), timedelta(days=2 * 365)
"""Ages on the first day of the reports."""


@dataclass(frozen=True, slots=True)
class _Names:
    """Names of a country, whose passports are of it: of women, of men, and of families."""

    country: str
    female: str
    male: str
    family: str
    family_female: str = ""
    """Names of families as women bear them, where they differ."""


_NAMES = (
    _Names("nz", "Juniper Aroha Hazel", "Rowan Tane Miles", "Ashdown Whitlock Marlow Penrose"),
    _Names("uy", "Lucía Ximena Noemí", "Julián Ramón Íñigo", "Etcheverry Muñoz Peñalba Güell"),
    _Names("br", "Conceição Inês Thaís", "João Caetano Estêvão", "Assunção Brandão Guimarães"),
    _Names("de", "Käthe Jördis Grete", "Jürgen Götz Sören", "Groß Süßmilch Möhring Weiß"),
    _Names("fr", "Maëlle Zoé Élodie", "Loïc Noël Théo", "Lefèvre Garçon D'Aubigné Béranger"),
    _Names("pl", "Łucja Żaneta Bożena", "Stanisław Błażej Józef", "Wróbel Dąb Źrebiec Gołąb"),
    _Names("is", "Þórdís Ásta Sigríður", "Þór Björn Guðmundur", "Blöndal Thorarensen Hafstein"),
    _Names("tr", "Çiğdem Ayşe Işıl", "İsmail Oğuz Şükrü", "Yıldız Çağlayan Öztürk Gündoğdu"),
    _Names("vn", "Hương Thảo Ngọc", "Đức Dũng Hải", "Nguyễn Trần Phạm Đặng"),
    _Names("gr", "Ελένη Ζωή Αθηνά", "Νίκος Σπύρος Ιάσων", "Καλογεράς Μαυρίδης Ξένος"),
    _Names(
        *("ua", "Оксана Олена Леся", "Тарас Андрій Остап"),
        *("Шевчук Мельник Їжакевич", "Шевчук Мельник Їжакевич"),
    ),
    _Names(
        *("bg", "Цветана Райна Йоана", "Борис Румен Калоян"),
        *("Стоянов Цветков Желязков", "Стоянова Цветкова Желязкова"),
    ),
    _Names("jp", "葵 結衣 さくら", "蓮 大翔 健太", "佐藤 渡辺 小林 長谷川"),
    _Names("eg", "ليلى مريم سلمى", "يوسف كريم طارق", "حداد منصور الشريف"),
    _Names("in", "अनन्या मीरा काव्या", "अर्जुन रोहन विवेक", "शर्मा वर्मा त्रिपाठी"),
)


def patient(seed: str, number: int, *, first_day: date) -> Resource:
    """Return the patient of a number, who was born before the first day of the reports."""
    random = Random(f"{seed}/patient/{number}")  # noqa: S311 - nothing here is a secret
    names = random.choice(_NAMES)
    gender = random.choice(("female", "male"))
    given = random.sample((names.female if gender == "female" else names.male).split(), 2)
    families = (gender == "female" and names.family_female) or names.family
    days = random.randrange(_YOUNGEST.days, _OLDEST.days)
    return {
        "resourceType": "Patient",
        "id": "patient-1",
        "identifier": [
            {
                "system": f"http://hl7.org/fhir/sid/{names.country}",
                "value": f"{_letters(random)}{number:07}",
                "type": {"coding": [{"system": f"{HL7}/v2-0203", "code": "PPN"}]},
            }
        ],
        "name": [
            {
                "family": random.choice(families.split()),
                "given": given[: random.choice((1, 1, 2))],
            }
        ],
        "telecom": [{"system": "email", "value": f"person-{number}@mail.example", "use": "home"}],
        "gender": gender,
        "birthDate": str(first_day - timedelta(days=days)),
    }


def _letters(random: Random) -> str:
    return "".join(random.choices("ABCDEFGHJKLMNPRSTUVWXYZ", k=2))
