/// The order of the folders of each target, from the top: a file names types of its own folder and of those further down.
///
/// The order is read from docs/architecture.md, from lines `TARGET: FOLDER FOLDER …`; `.` is the target's root.
struct FolderOrder {
    static let document = "docs/architecture.md"
    private static let title = "## Folders, from the top"

    /// Target → its folders, from the top.
    let folders: [String: [String]]

    init(_ architecture: SourceFile) {
        let section = architecture.lines.drop { $0 != FolderOrder.title[...] }.dropFirst().prefix { !$0.hasPrefix("## ") }
        folders = section.reduce(into: [:]) { folders, line in
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, parts[0].allSatisfy({ $0.isLetter || $0 == "-" }) else { return }
            folders[String(parts[0])] = parts[1].split(separator: " ").map(String.init)
        }
    }

    /// Uses of types of a folder further up, and folders without a place in the order.
    func findings(_ files: [SourceFile]) -> [Finding] {
        let places = files.compactMap(Place.init)
        return Dictionary(grouping: places, by: \.target).sorted { $0.key < $1.key }.flatMap { target, places in
            // A target without folders needs no order.
            Set(places.map(\.folder)).count < 2 ? [] : findings(in: target, places)
        }
    }

    private func findings(in target: String, _ places: [Place]) -> [Finding] {
        let order = folders[target, default: []]
        let depths = Dictionary(order.enumerated().map { ($1, $0) }) { first, _ in first }
        let present = Set(places.map(\.folder))
        let unlisted = present.subtracting(order).sorted().map { "\(target)/\($0) has no place in the order of folders" }
        let missing = order.filter { !present.contains($0) }
            .map { "\(target)/\($0) is in the order of folders, and does not exist" }
        var owners: [Substring: Place] = [:]
        for place in places {
            for name in place.words.types { owners[name] = place }
        }
        let upward = places.flatMap { place in
            place.words.names.compactMap { name, line -> Finding? in
                guard let owner = owners[name], !place.words.nestedTypes.contains(name),
                    let own = depths[place.folder], let other = depths[owner.folder], other < own
                else { return nil }
                return Finding(
                    path: place.path, line: line, what: "\(place.folder) names \(name) of \(owner.folder), which stands above it")
            }
        }
        return (unlisted + missing).map { Finding(path: FolderOrder.document, line: 1, what: $0) } + upward
    }

    /// A file of a target: `Sources/TARGET/FOLDER/…`.
    private struct Place {
        let path: String
        let target: String
        let folder: String
        let words: SwiftWords

        init?(_ file: SourceFile) {
            let parts = file.path.split(separator: "/")
            guard file.isSwift, parts.count > 2, parts[0] == "Sources" else { return nil }
            path = file.path
            target = String(parts[1])
            folder = parts.count > 3 ? String(parts[2]) : "."
            words = SwiftWords(file)
        }
    }
}
