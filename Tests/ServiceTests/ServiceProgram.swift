import Foundation
import NetworkLab

/// The built program `netwatch serve`, on a host of its own.
struct ServiceProgram {
    let program: Program
    /// The address of the page: `127.0.0.1:PORT`.
    let address: String

    /// Starts the service, and waits until it listens. The configuration of the machine is not read.
    init(
        _ arguments: [String], on host: LabHost, state: String, configuration: String, output: Program.Output = .pipe,
        environment: [String: String?] = [:]
    ) throws {
        _ = try Programs.built("netwatch-service")
        program = try Program(
            [try Programs.netwatch, "serve", "--state", state, "--config", configuration, "--listen", "127.0.0.1:0"] + arguments,
            on: host,
            environment: ["NOTIFY_SOCKET": nil, "LISTEN_FDS": nil, "XDG_RUNTIME_DIR": nil, "RUNTIME_DIRECTORY": state]
                .merging(environment) { $1 },
            output: output)
        address = try Self.address(of: program)
    }

    private static func address(of program: Program) throws -> String {
        let deadline = ContinuousClock.now + .seconds(60)
        let start = "the page is at http://"
        while ContinuousClock.now < deadline {
            if let range = program.standardError.range(of: start) {
                return String(program.standardError[range.upperBound...].prefix { $0 != "/" })
            }
            if (try? program.wait(within: .milliseconds(20))) != nil { break }
        }
        throw LabError("the service did not start: \(program.ending)")
    }
}

/// A record of the service's stream.
struct ServiceRecord: Decodable {
    struct Subject: Decodable {
        var kind: String
        var name: String?
    }

    var seq: Int
    var type: String
    var ts: String
    var target: String?
    var status: String?
    var incident: String?
    var state: String?
    var subject: Subject?
    var into: String?
    var recorded: Bool?
    var reason: String?
    var from: String?
    var to: String?

    init(_ line: String) throws { self = try JSONDecoder().decode(Self.self, from: Data(line.utf8)) }
}

/// The documents of `netwatch history` and `netwatch report`.
struct ServiceHistory: Decodable {
    struct Incident: Decodable {
        var incident: String
        var state: String
        var from: String
        var to: String?
    }
    struct Gap: Decodable {
        var from: String
        var to: String
        var reason: String
    }

    var incidents: [Incident]
    var gaps: [Gap]
    var next: String?
}

struct ServiceReport: Decodable {
    struct Target: Decodable {
        var target: String
        var seconds: [String: Double]
        var probes: Int
        var worst: [ServiceHistory.Incident]
    }

    var since: String
    var until: String
    var targets: [Target]
}

/// The evidence about a target, which its page offers as JSON.
struct TargetEvidence: Decodable {
    struct Phases: Decodable {
        var connect: Double
    }
    struct Probe: Decodable {
        var ok: Bool
        var phases_ms: Phases
        var response_ms: Double?
    }
    struct Layer: Decodable {
        var layer: String
        var detail: String
        var ms: Double?
    }

    struct Cause: Decodable {
        var code: String
    }
    struct Entry: Decodable {
        var status: String?
        var cause: Cause?
    }

    var outages: [Entry]
    var last_probe: Probe?
    var layers: [Layer]
}

extension Date {
    /// Creates the date of a record's time, with milliseconds.
    init(record text: String) throws {
        self = try Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}
