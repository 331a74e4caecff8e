"""Functions that the tasks here name, as tasks of lm-eval do."""


def overlap(references, predictions, **_):
    said, right = (set(texts[0].lower().strip(" .").split()) for texts in (predictions, references))
    return {"overlap": len(said & right) / max(1, len(said | right))}


def numbered(dataset):
    return dataset.map(lambda _, index: {"number": index + 1}, with_indices=True)


def ask(doc):
    return f"{doc['number']}. {doc['question']}"


def results(doc, results):
    return {
        "says_it": any(alias.lower() in results[0].lower() for alias in doc["aliases"]),
        "words": len(results[0].split()),
    }
