/// What happens to a download.
enum Fault: String, CaseIterable {
    case cutOnce = "the connection is reset after 40 %"
    case cutAgainAndAgain = "it is reset after each further 20 %"
    case unwell = "503 with Retry-After, twice"
    case ignoresRange = "reset after 40 %; then the server knows no ranges"
    case liesAboutRange = "reset after 40 %; then the part begins elsewhere, and says so"
    case cutAndChanged = "reset after 40 %; the file changes, its size does not"
    case cutAndChangedNameless = "the same, without ETag and date"
    case killed = "the client is killed after 40 %, and started again"
    case killedAndIgnoresRange = "killed; then the server knows no ranges"
    case killedAndChanged = "killed; the file changes, its size does not"
    case killedAndChangedNameless = "killed and changed, without ETag and date"

    var kills: Bool {
        switch self {
        case .killed, .killedAndIgnoresRange, .killedAndChanged, .killedAndChangedNameless: true
        default: false
        }
    }

    var changesFile: Bool {
        switch self {
        case .cutAndChanged, .cutAndChangedNameless, .killedAndChanged, .killedAndChangedNameless: true
        default: false
        }
    }

    var isNameless: Bool { self == .cutAndChangedNameless || self == .killedAndChangedNameless }
    var ignoresRange: Bool { self == .ignoresRange || self == .killedAndIgnoresRange }
}
