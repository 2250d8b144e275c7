/// British spellings, and the American ones that the repository has.
enum BritishSpelling {
    /// Each British form, in lower case, with its American one.
    static let american: [String: String] = {
        let our = [
            "behavi", "misbehavi", "neighb", "col", "discol", "hon", "fav", "flav", "harb", "lab", "rum", "vap",
            "endeav", "arm", "hum", "rig", "vig", "sav",
        ]
        let ourEndings = ["", "s", "ed", "ing", "al", "hood", "hoods", "able", "ably", "ite", "ites", "less", "ful"]
        let ise = [
            "serial", "deserial", "initial", "reinitial", "final", "normal", "canonical", "local", "general",
            "special", "total", "capital", "real", "visual", "central", "decentral", "recogn", "organ", "reorgan",
            "optim", "minim", "maxim", "synchron", "author", "summar", "priorit", "categor", "memor", "emphas",
            "util", "random", "custom", "stabil", "parallel", "penal", "sanit", "symbol", "token", "item",
            "standard", "external", "internal", "modern", "apolog", "critic", "character", "familiar", "formal",
            "global", "neutral", "scrutin", "virtual", "analog", "container", "material", "digit", "equal", "harmon",
        ]
        let iseEndings = ["se", "ses", "sed", "sing", "ser", "sers", "sation", "sations", "sable"]
        let doubled = [
            "cancel", "label", "relabel", "unlabel", "model", "remodel", "travel", "signal", "tunnel", "channel",
            "level", "marshal", "unmarshal", "dial", "total", "fuel", "equal", "spiral", "unravel", "panel",
            "funnel", "shovel",
        ]
        let doubledEndings = ["ed", "ing", "er", "ers", "able"]
        let others = [
            "centre": "center", "centres": "centers", "centred": "centered", "theatre": "theater", "fibre": "fiber",
            "litre": "liter", "litres": "liters", "calibre": "caliber", "manoeuvre": "maneuver",
            "catalogue": "catalog", "catalogues": "catalogs", "catalogued": "cataloged", "licence": "license",
            "licences": "licenses", "defence": "defense", "offence": "offense", "pretence": "pretense",
            "practise": "practice", "practised": "practiced", "grey": "gray", "greyed": "grayed",
            "programme": "program", "programmes": "programs", "analyse": "analyze", "analysed": "analyzed",
            "analysing": "analyzing", "analyser": "analyzer", "paralyse": "paralyze", "catalyse": "catalyze",
            "judgement": "judgment", "judgements": "judgments", "artefact": "artifact", "artefacts": "artifacts",
            "learnt": "learned", "spelt": "spelled", "whilst": "while", "amongst": "among", "fulfil": "fulfill",
            "fulfils": "fulfills", "enrol": "enroll", "skilful": "skillful", "wilful": "willful",
            "sceptical": "skeptical", "aluminium": "aluminum", "cheque": "check", "ageing": "aging",
            "plough": "plow", "mould": "mold", "jewellery": "jewelry", "cosy": "cozy", "tyre": "tire",
        ]
        var words = others
        for stem in our {
            for ending in ourEndings { words[stem + "our" + ending] = stem + "or" + ending }
        }
        for stem in ise {
            for ending in iseEndings { words[stem + "i" + ending] = stem + "iz" + ending.dropFirst() }
        }
        for stem in doubled {
            for ending in doubledEndings { words[stem + "l" + ending] = stem + ending }
        }
        return words
    }()

    /// Spellings of Swift's and Foundation's own interfaces, which code mirrors.
    static let mirrored: Set<String> = ["cancelled", "cancelling", "cancellable"]
}
