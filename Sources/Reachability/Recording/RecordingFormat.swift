/// The format of a recording: JSON Lines with a header, one line for each input in the order in which the machine handled them,
/// and an end line.
///
/// ```
/// {"netwatch_recording":3,"program":"netwatch","boot_id":"…","netns":null,"netns_inode":4026531840,"selection":"any","families":[4,6]}
/// {"t":81234567,"w":1763700000123456789,"input":"datagram","bytes":"<base64>"}
/// {"t":81234567,"w":1763700000123456789,"input":"turn-ended"}
/// {"netwatch_recording_end":3,"inputs":2}
/// ```
/// `t` is CLOCK_MONOTONIC and `w` is CLOCK_REALTIME, in nanoseconds, of the turn that handled the input. A `route-reply` for a
/// target has the `port` of its query beside `destination` and `interface`, and `all` if the query asked for all next hops.
///
/// In format 3, the loss of the only usable link is published before the turn's end; in format 2, it was not.
/// Readers refuse another number for `netwatch_recording`. They also refuse unknown inputs, because a skipped input would change
/// all later events. The last line counts the inputs. If it is missing, the program was killed or the disk failed, and the
/// recording is incomplete. No line follows it.
package struct RecordingHeader: Hashable, Sendable, Codable {
    /// The version of the format.
    package static let version = 3

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

    /// The origin of the recording.
    package var identity: MonitorIdentity {
        MonitorIdentity(bootID: bootID, namespaceName: namespaceName, namespaceInode: namespaceInode)
    }

    /// The configuration of the recorded monitor; `nil` if this version does not know a value in the header.
    package var configuration: MonitorConfiguration? {
        guard let selection = MonitorConfiguration.Selection(text: selection) else { return nil }
        let families = families.compactMap { IPAddress.Family(rawValue: $0) }
        return MonitorConfiguration(
            namespace: namespaceName.map { NetworkNamespace($0) }, selection: selection, families: Set(families)
        )
    }
}

/// The last line of a complete recording.
struct RecordingEnd: Hashable, Codable {
    var version = RecordingHeader.version
    /// The number of inputs between the header and this line.
    var inputs: Int

    private enum CodingKeys: String, CodingKey {
        case version = "netwatch_recording_end"
        case inputs
    }
}

/// The part of the header that all versions share.
struct RecordingVersion: Decodable {
    let version: Int

    private enum CodingKeys: String, CodingKey { case version = "netwatch_recording" }
}

extension MonitorConfiguration.Selection {
    /// The selection in the form `any`, `named:IF`, `required:TYPE`, or `prohibited:TYPE,TYPE`.
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

/// The origin of a monitor's records.
package struct MonitorIdentity: Hashable, Sendable {
    /// The boot id (`/proc/sys/kernel/random/boot_id`).
    package var bootID: String
    /// The namespace as the user wrote it; `nil` for the process's own namespace.
    package var namespaceName: String?
    /// The inode of the namespace's file.
    package var namespaceInode: UInt64

    package init(bootID: String, namespaceName: String?, namespaceInode: UInt64) {
        self.bootID = bootID
        self.namespaceName = namespaceName
        self.namespaceInode = namespaceInode
    }
}
