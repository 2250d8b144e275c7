import Console
import FoundationEssentials
import Reachability

/// The document of a service's `/api/v1/status`, from the pages that it comes in. The targets stay in the bytes of the service, so that JSON has
/// all of its keys, also those of a later version.
package struct ServiceStatus {
    /// The bytes are no such document.
    package struct Malformed: Error, Hashable {}

    /// The start of the first page, up to the list of targets.
    private var head: [UInt8] = []
    private var targets: [ArraySlice<UInt8>] = []
    /// The end of the last page, from the end of that list on.
    private var tail: [UInt8] = []
    /// The position of the next page; `nil` if there is none.
    package private(set) var next: String?

    package init() {}

    /// Adds the next page.
    package mutating func add(_ page: [UInt8]) throws(Malformed) {
        guard let parts = JSONList(in: page, member: "targets") else { throw Malformed() }
        if head.isEmpty { head = Array(page[..<parts.start]) }
        tail = Array(page[parts.end...])
        targets += parts.elements.map { page[$0] }
        guard let keys = RecordReader().statusKeys(Array(page[..<parts.start]) + tail) else { throw Malformed() }
        next = keys.next
    }

    /// The document as one line of JSON, without the newline.
    package var json: [UInt8] { head + targets.joined(separator: [UInt8(ascii: ",")]) + tail }

    /// The document for people.
    package struct Reading {
        package var document: StatusDocument
        /// The names of the targets of the document.
        package var names: [String]
        /// The name of the service's machine.
        package var instance: String
    }

    /// Reads the document; `nil` if the service has no path yet. - Parameter rule: the rule for its verdict.
    package func reading(_ rule: FailureRule) -> Reading? {
        var reader = RecordReader()
        guard let keys = reader.statusKeys(head + tail), let path = keys.path else { return nil }
        var (updates, names): ([ServerUpdate], [String]) = ([], [])
        for target in targets {
            guard let record = reader.record(Array(target)), case .server(_, let update) = record.event else { continue }
            updates.append(update)
            names.append(record.nameSentence(update.endpoint))
        }
        let update = PathUpdate(path: path, reasons: [], isInitial: true, coalescedEventCount: 0, moment: keys.moment)
        let document = StatusDocument(moment: keys.moment, path: update, targets: updates, canary: keys.canary, rule: rule)
        return Reading(document: document, names: names, instance: keys.instance)
    }
}

/// The places of the elements of a list that is a member of a JSON object. Only the structure is read.
struct JSONList {
    /// The place of the first element, or of the closing bracket.
    let start: Int
    /// The place of the closing bracket.
    let end: Int
    let elements: [Range<Int>]

    /// Finds the list; `nil` if the text is no object with such a member.
    init?(in json: [UInt8], member name: String) {
        let wanted = Array("\"\(name)\"".utf8)
        var (depth, start): (Int, Int?) = (0, nil)
        var (key, text): (Range<Int>?, Int?) = (nil, nil)
        var (element, elements): (Int?, [Range<Int>]) = (nil, [])
        var place = 0
        while place < json.count {
            defer { place += 1 }
            let byte = json[place]
            if let begin = text {
                if byte == UInt8(ascii: "\\") { place += 1 }
                guard byte == UInt8(ascii: "\"") else { continue }
                text = nil
                if depth == 1 { key = begin..<place + 1 }
                continue
            }
            // The list itself is the second level.
            if start != nil, depth == 2, element == nil, byte != UInt8(ascii: "]"), byte > 0x20 { element = place }
            switch byte {
            case UInt8(ascii: "\""): text = place
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                if byte == UInt8(ascii: "["), depth == 1, start == nil, let key, json[key].elementsEqual(wanted) {
                    start = place + 1
                }
                depth += 1
            case UInt8(ascii: ","):
                guard start != nil, depth == 2, let begin = element else { continue }
                elements.append(begin..<place)
                element = nil
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                depth -= 1
                guard let start, depth == 1 else { continue }
                if let element { elements.append(element..<place) }
                (self.start, end, self.elements) = (start, place, elements)
                return
            default: break
            }
        }
        return nil
    }
}
