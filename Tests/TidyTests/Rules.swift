/// The rules of the house that neither the compiler nor swift-format checks. Each rule takes a file and returns its findings.
enum Rules {
    static let all: [@Sendable (SourceFile) -> [Finding]] = [
        importWalls, pureFolders, unfinishedWork, length, reasons, crashes, skips, names, foreignPaths, lockedClosures,
        emptyStorage, Language.identifiers, Language.documentation, Language.spelling,
    ]

    /// Folders and files that contain only values and rules: no descriptor, no clock, no file.
    static let pure = [
        "Sources/Pacing", "Sources/Reachability/Kernel", "Sources/Reachability/Evidence", "Sources/Reachability/Interfaces",
        "Sources/Reachability/Levels", "Sources/Reachability/Names", "Sources/Reachability/Path", "Sources/Reachability/Verdict",
        "Sources/Reachability/Incidents", "Sources/Reachability/Diagnosis", "Sources/Reachability/Machine",
        "Sources/Records/Documents", "Sources/Records/Lines", "Sources/Records/Encoding",
        "Sources/netwatch-transfer/Output", "Sources/netwatch-transfer/Plans", "Sources/Console/Text",
        "Sources/HTTPSession/Fields", "Sources/HTTPSession/Request", "Sources/HTTPSession/Response", "Sources/HTTPSession/Resume",
        "Sources/HTTPSession/Retry", "Sources/HTTPSession/Task", "Sources/HTTPSession/Upload",
        "Sources/HTTPSessionJournal/Life", "Sources/netwatch-service/Configuration",
        "Sources/netwatch-service/Ledger", "Sources/netwatch-service/Board", "Sources/netwatch-service/Pages",
    ]

    /// The only folder that imports each C library, SQLite through GRDB, YAML, or the web server.
    static let walls = [
        "CLibnl": "Sources/Reachability/Netlink", "CAres": "Sources/Reachability/Probe", "CCurl": "Sources/HTTPSession/Curl",
        "CIdn2": "Sources/InternationalNames", "COpenSSL": "Sources/Certificates", "CTLSReading": "Sources/Certificates",
        "CRE2": "Sources/Expressions", "GRDB": "Sources/HTTPSessionJournal/Store",
        "Yams": "Sources/netwatch-service/ConfigurationFiles", "CYaml": "Sources/netwatch-service/ConfigurationFiles",
        "Hummingbird": "Sources/netwatch-service/Web",
        "HummingbirdCore": "Sources/netwatch-service/Web", "NIOCore": "Sources/netwatch-service/Web",
        "NIOHTTP1": "Sources/netwatch-service/Web", "NIOPosix": "Sources/netwatch-service/Web",
    ]

    /// The exceptions: files with side effects in a pure folder.
    static let edges: Set<String> = [
        "Sources/Reachability/Interfaces/InterfaceEvidenceReader.swift", "Sources/Reachability/Interfaces/SysfsInterfaces.swift",
    ]

    static func isPure(_ file: SourceFile) -> Bool {
        file.isIn(pure) && !edges.contains(file.path)
    }

    /// Only one folder imports each C library, only HTTPSessionFoundation and the journal import Foundation, and pure folders
    /// import no C.
    static func importWalls(_ file: SourceFile) -> [Finding] {
        guard file.isSwift, file.isIn(["Sources"]) else { return [] }
        return file.imports.compactMap { line, module in
            func finding(_ what: String) -> Finding { Finding(path: file.path, line: line, what: what) }
            // The test kit's server is the other side of TLS.
            // The journal and the service each have a database of their own.
            let isService = module == "GRDB" && file.isIn(["Sources/netwatch-service/Store"])
            if let folder = walls[module], !isService, !file.isIn([folder, "Sources/HTTPSessionTestKit"]) {
                return finding("only \(folder) imports \(module)")
            }
            if isPure(file)
                && [
                    "CAres", "CCurl", "CIdn2", "CLibnl", "CLinux", "COpenSSL", "CRE2", "Dispatch", "Glibc", "Musl",
                ].contains(module)
            {
                return finding("pure code imports no \(module)")
            }
            // A monitor's process must load neither libcurl nor SQLite nor ICU, not even through another module.
            let sessions = [
                "Sources/netwatch-transfer", "Sources/HTTPSessionJournal", "Sources/HTTPSessionFoundation",
                "Sources/HTTPSessionCompatibility", "Sources/HTTPSessionTestKit",
            ]
            if module == "HTTPSession" && !file.isIn(sessions) {
                return finding(
                    "HTTPSession brings libcurl: only netwatch-transfer and the products on HTTPSession import it"
                )
            }
            // A program without durable sessions must not carry a database.
            if module == "HTTPSessionJournal" { return finding("HTTPSessionJournal brings SQLite: nothing here imports it") }
            if module == "HTTPSessionFoundation" { return finding("HTTPSessionFoundation brings ICU: nothing here imports it") }
            // Property lists, XML and Progress exist only in Foundation, and GRDB loads it in any case.
            let foundation = ["Sources/HTTPSessionFoundation", "Sources/HTTPSessionJournal"]
            if module.hasPrefix("Foundation") && module != "FoundationEssentials" && !file.isIn(foundation) {
                return finding("FoundationEssentials is enough: \(module) is not to be loaded")
            }
            return nil
        }
    }

    /// Pure code gets the time, random draws and the content of files as arguments.
    static func pureFolders(_ file: SourceFile) -> [Finding] {
        guard file.isSwift, isPure(file) else { return [] }
        let impure = [
            "FileManager", "ProcessInfo", "Date()", "Date.now", "ContinuousClock", "SuspendingClock",
            "SystemRandomNumberGenerator",
        ]
        return file.findings { line in
            impure.first { code(line).contains($0) }.map { "pure code uses no \($0)" }
        }
    }

    /// Unfinished work names its issue: `#12` on the same line.
    static func unfinishedWork(_ file: SourceFile) -> [Finding] {
        // The words are put together, so that this file does not find itself.
        let marks = ["TO" + "DO", "FIX" + "ME", "XX" + "X"]
        return file.findings { line in
            let words = line.split { !$0.isLetter }
            guard let mark = marks.first(where: { words.contains(Substring($0)) }) else { return nil }
            return line.contains(/#[0-9]+/) ? nil : "\(mark) without the number of its issue"
        }
    }

    /// Files of more than 400 lines, each with the reason why it is not divided.
    static let longFiles: [String: String] = [:]

    static func length(_ file: SourceFile) -> [Finding] {
        let count = file.lines.last == "" ? file.lines.count - 1 : file.lines.count
        guard file.isSwift, file.isIn(["Sources"]), count > 400, longFiles[file.path] == nil else { return [] }
        return [Finding(path: file.path, line: 401, what: "\(count) lines: divide it, or list it with the reason")]
    }

    /// A line that switches off a check of the compiler has its reason, in a comment on the same line or just above. Several
    /// consecutive lines with the same switch need one reason.
    static func reasons(_ file: SourceFile) -> [Finding] {
        guard file.isSwift, file.isIn(["Sources"]) else { return [] }
        return zip(1..., file.lines).compactMap { number, line in
            let switches = ["@unchecked Sendable", "nonisolated(unsafe)", "@preconcurrency", "@exclusivity(unchecked)"]
            guard let found = switches.first(where: { code(line).contains($0) }), !line.contains("//") else { return nil }
            let above = file.lines[..<(number - 1)].last { !code($0).contains(found) }?.drop(while: \.isWhitespace) ?? ""
            return above.hasPrefix("//") ? nil : Finding(path: file.path, line: number, what: "\(found) without its reason")
        }
    }

    /// Input never ends the process. Only a bug of ours may, through `preconditionFailure` with the state in the message.
    static func crashes(_ file: SourceFile) -> [Finding] {
        guard file.isSwift, file.isIn(["Sources"]) else { return [] }
        return file.findings { code($0).contains("fatalError(") ? "fatalError: throw, count, or preconditionFailure" : nil }
    }

    /// A missing capability of the machine skips a test, or fails it in continuous integration. One file decides that for all
    /// tests.
    static func skips(_ file: SourceFile) -> [Finding] {
        let isDecider = file.path == "Tests/NetworkLab/Availability.swift" || file.isIn(["Tests/TidyTests"])
        guard file.isSwift, file.isIn(["Tests"]), !isDecider else { return [] }
        return file.findings { line in
            [".enabled(if:", ".disabled("].contains { code(line).contains($0) }
                ? "a trait of NetworkLab decides which tests are skipped" : nil
        }
    }

    /// A file or folder is named after its content.
    static func names(_ file: SourceFile) -> [Finding] {
        let empty: Set<Substring> = ["Utils", "Util", "Utilities", "Helpers", "Helper", "Common", "Misc"]
        let parts = file.path.split { $0 == "/" || $0 == "." || $0 == "+" }
        guard let found = parts.first(where: empty.contains) else { return [] }
        return [Finding(path: file.path, line: 1, what: "\(found) names nothing: name the contents")]
    }

    /// No file contains a path of the machine on which it was written.
    static func foreignPaths(_ file: SourceFile) -> [Finding] {
        let roots = ["work", "root", "opt/swift"]
        return file.findings { line in
            roots.first { root in
                line.ranges(of: "/\(root)/").contains { range in
                    guard let before = line[..<range.lowerBound].last else { return true }
                    return !before.isLetter && !before.isNumber && !"._-}*".contains(before)
                }
            }.map { "a path of one machine: /\($0)" }
        }
    }

    /// A closure that is itself the generic value of a lock gets another wrapper at each access, until a call through all
    /// wrappers overflows the stack. A struct must hold it.
    static func lockedClosures(_ file: SourceFile) -> [Finding] {
        guard file.isSwift else { return [] }
        return file.findings { line in
            guard line.has("Locked<"), code(line).contains(/Locked<\(.*->/) else { return nil }
            return "a closure as the value of a lock: put it into a struct"
        }
    }

    /// An array of uninitialized capacity is never empty. The standard library writes the count of an array of capacity 0 into
    /// the storage that all empty arrays share (Swift 6.3). ThreadSanitizer reports that as a race. A test for a count above 0
    /// stands within the three lines before the array, or a comment says why the capacity is `above 0`.
    static func emptyStorage(_ file: SourceFile) -> [Finding] {
        guard file.isSwift, !file.isIn(["Tests/TidyTests"]) else { return [] }
        return file.lines.indices.compactMap { index in
            let line = code(file.lines[index])
            guard ["](", "Array("].contains(where: { line.contains($0 + "unsafeUninitializedCapacity:") }) else { return nil }
            let isChecked = file.lines[max(0, index - 3)...index].contains { $0.contains("> 0") || $0.contains("above 0") }
            return isChecked
                ? nil : Finding(path: file.path, line: index + 1, what: "an array whose capacity may be 0: test it before")
        }
    }

    /// The line without its comment. A `//` in a string ends the line too, so a rule may miss code but never reports a string's
    /// text.
    private static func code(_ line: Substring) -> Substring {
        line.has("//") ? line.firstRange(of: "//").map { line[..<$0.lowerBound] } ?? line : line
    }
}
