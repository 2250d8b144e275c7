/// The format of a recording: JSON Lines, a header, then one input a line in the order in which the machine took them, and the end.
///
/// ```
/// {"netwatch_recording":2,"program":"netwatch","boot_id":"…","netns":null,"netns_inode":4026531840,"selection":"any","families":[4,6]}
/// {"t":81234567,"w":1763700000123456789,"input":"datagram","bytes":"<base64>"}
/// {"t":81234567,"w":1763700000123456789,"input":"turn-ended"}
/// {"netwatch_recording_end":2,"inputs":2}
/// ```
/// A `route-reply` for a target has the `port` of its question beside `destination` and `interface`, and `all` where all next hops
/// were asked for.
/// `t` is CLOCK_MONOTONIC and `w` CLOCK_REALTIME, in nanoseconds, of the turn that took the input. Readers refuse another number
/// behind `netwatch_recording`, and inputs that they do not know: an input that is passed over would change what follows. The last line counts the inputs: a recording
/// without it, that of a killed program or of a disk that failed, holds less than was seen. Nothing follows it.
package struct RecordingHeader: Hashable, Sendable, Codable {
    /// The version of the format.
    package static let version = 2

    package var version: Int
    package var program: String
    package var bootID: String
    package var namespaceName: String?
    package var namespaceInode: UInt64
    package var selection: String
    package var families: [UInt8]

    enum CodingKeys: String, CodingKey {
        case version = "netwatch_recording"
        case program
        case bootID = "boot_id"
        case namespaceName = "netns"
        case namespaceInode = "netns_inode"
        case selection, families
    }

    package init(program: String, identity: MonitorIdentity, configuration: MonitorConfiguration) {
        version = Self.version
        self.program = program
        bootID = identity.bootID
        namespaceName = identity.namespaceName
        namespaceInode = identity.namespaceInode
        selection = configuration.selection.text
        families = configuration.families.map(\.rawValue).sorted()
    }

    /// What was recorded.
    package var identity: MonitorIdentity {
        MonitorIdentity(bootID: bootID, namespaceName: namespaceName, namespaceInode: namespaceInode)
    }

    /// How it was watched; `nil` when the header says what this version does not know.
    package var configuration: MonitorConfiguration? {
        guard let selection = MonitorConfiguration.Selection(text: selection) else { return nil }
        let families = families.compactMap { IPAddress.Family(rawValue: $0) }
        return MonitorConfiguration(
            namespace: namespaceName.map { NetworkNamespace($0) }, selection: selection, families: Set(families)
        )
    }
}

/// The last line of a recording that was written to its end.
struct RecordingEnd: Hashable, Codable {
    var version = RecordingHeader.version
    /// How many inputs stand between the header and this line.
    var inputs: Int

    private enum CodingKeys: String, CodingKey {
        case version = "netwatch_recording_end"
        case inputs
    }
}

/// What the headers of all versions share.
struct RecordingVersion: Decodable {
    let version: Int

    private enum CodingKeys: String, CodingKey { case version = "netwatch_recording" }
}

extension MonitorConfiguration.Selection {
    /// `any`, `named:IF`, `required:TYPE`, `prohibited:TYPE,TYPE`.
    var text: String {
        switch self {
        case .any: "any"
        case .named(let name): "named:\(name)"
        case .required(let type): "required:\(type.rawValue)"
        case .prohibited(let types): "prohibited:" + types.map(\.rawValue).sorted().joined(separator: ",")
        }
    }

    init?(text: String) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let value = parts.count > 1 ? String(parts[1]) : ""
        switch parts[0] {
        case "any": self = .any
        case "named": self = .named(value)
        case "required":
            guard let type = InterfaceType(rawValue: value) else { return nil }
            self = .required(type)
        case "prohibited": self = .prohibited(Set(value.split(separator: ",").compactMap { InterfaceType(rawValue: String($0)) }))
        default: return nil
        }
    }
}
