import Foundation
import Testing

/// Checks that a program in another package compiles against a later version of a library that has more cases.
@Suite(.timeLimit(.minutes(5))) struct InterfaceGrowthTests {
    /// A library, a program that uses it, and the additions of a later version.
    struct Library: Sendable, CustomTestStringConvertible {
        let name: String
        /// A program in which a line with `DEFAULT` is a case for unknown values.
        let client: String
        /// A file, a text in it, and its replacement.
        let additions: [(file: String, text: String, replacement: String)]
        /// A declaration that compiles with the additions only.
        let added: String

        var testDescription: String { name }
    }

    static let libraries = [reachability, session, journal, testKit]

    @Test(arguments: libraries) func `a client compiles against the library with added cases`(_ library: Library) throws {
        let compiler = try ClientCompiler()
        let grown = try compiler.buildGrown(library.name, library.additions)
        let client = library.client.replacing("DEFAULT", with: "@unknown default")
        #expect(try compiler.compiles(client, with: nil))
        #expect(try compiler.compiles(client, with: grown))
        #expect(try compiler.compiles("import \(library.name)\n\(library.added)", with: grown))
        #expect(try !compiler.compiles("import \(library.name)\n\(library.added)", with: nil))
    }

    @Test(arguments: libraries)
    func `a client that lists all cases without a default does not compile`(_ library: Library) throws {
        let exhaustive = library.client.split(separator: "\n").filter { !$0.contains("DEFAULT") }.joined(separator: "\n")
        let errors = try ClientCompiler().errors(in: exhaustive)
        #expect(errors.count == library.client.split(separator: "\n").count { $0.contains("DEFAULT") }, "\(errors)")
        #expect(errors.values.allSatisfy { $0.contains("may have additional unknown values") }, "\(errors)")
    }

    private static let reachability = Library(
        name: "Reachability",
        client: """
            import Reachability

            func text(_ type: InterfaceType) -> String {
                switch type {
                case .wired: "cable"
                case .wifi: "Wi-Fi"
                case .cellular, .loopback, .tunnel, .bridge, .bluetooth, .usb, .virtual, .other: "other"
                DEFAULT: "something new"
                }
            }
            func text(_ status: ServerStatus) -> String {
                switch status {
                case .up, .degraded: "up"
                case .down(let cause), .unreachable(let cause): text(cause.code)
                case .unknown: "unknown"
                DEFAULT: "something new"
                }
            }
            func text(_ code: Cause.Code) -> String {
                switch code {
                case .noCarrier: "no cable"
                default: code.rawValue
                }
            }
            """,
        additions: [
            ("Status/InterfaceType.swift", "    case other\n", "    case other\n    case satellite\n"),
            (
                "Status/ServerStatus.swift", "    case unreachable(Cause)\n",
                "    case unreachable(Cause)\n    case inMaintenance\n"
            ),
            (
                "Status/Cause+Codes.swift", "    // MARK: link\n",
                "    public static let eclipse = Cause.Code(\"eclipse\")\n    // MARK: link\n"
            ),
        ],
        added: "let added: InterfaceType = .satellite")

    private static let session = Library(
        name: "HTTPSession",
        client: """
            import HTTPSession

            func text(_ state: TransferTask.State) -> String {
                switch state {
                case .suspended, .waiting, .running, .backingOff, .waitingForConnectivity, .finished: "known"
                DEFAULT: "something new"
                }
            }
            func text(_ kind: TransferTask.Kind) -> String {
                switch kind {
                case .data, .download, .upload, .stream: kind.rawValue
                DEFAULT: "something new"
                }
            }
            func text(_ scheme: AuthenticationScheme) -> String {
                switch scheme {
                case .basic, .digest, .bearer, .ntlm, .negotiate: scheme.rawValue
                DEFAULT: "something new"
                }
            }
            func text(_ code: HTTPSessionError.Code) -> String {
                switch code {
                case .timedOut: "too slow"
                default: code.rawValue
                }
            }
            func size(_ event: SessionEvent) -> Int64? {
                switch event {
                case .downloadContinued(_, let offset, _): offset
                default: nil
                }
            }
            """,
        additions: [
            ("Session/TransferTask.swift", "        case finished\n", "        case finished\n        case paused\n"),
            ("Session/TransferTask.swift", "        case stream\n", "        case stream\n        case webSocket\n"),
            ("Messages/AuthenticationScheme.swift", "ntlm, negotiate\n", "ntlm, negotiate, mutual\n"),
            (
                "Session/SessionEvent.swift", "    case sessionInvalidated\n",
                "    case sessionInvalidated\n    case sessionMoved(TransferTask)\n"
            ),
            (
                "Messages/HTTPSessionError+Codes.swift", "    public static let misuse",
                "    public static let eclipse = HTTPSessionError.Code(\"eclipse\")\n    public static let misuse"
            ),
        ],
        added: "let added: (TransferTask.State, TransferTask.Kind, AuthenticationScheme) = (.paused, .webSocket, .mutual)")

    private static let journal = Library(
        name: "HTTPSessionJournal",
        client: """
            import HTTPSessionJournal

            func text(_ outcome: DurableEvent.Outcome) -> String {
                switch outcome {
                case .finished, .failed, .expired, .cancelled, .interrupted: "known"
                DEFAULT: "something new"
                }
            }
            func text(_ kind: DurableTaskInfo.Kind) -> String {
                switch kind {
                case .download, .upload: "known"
                DEFAULT: "something new"
                }
            }
            """,
        additions: [
            ("Coordinator/DurableEvent.swift", "        case interrupted\n", "        case interrupted\n        case replaced\n"),
            ("Coordinator/DurableTaskInfo.swift", "        case upload\n", "        case upload\n        case request\n"),
        ],
        added: "let added: (DurableEvent.Outcome, DurableTaskInfo.Kind) = (.replaced, .request)")

    private static let testKit = Library(
        name: "HTTPSessionTestKit",
        client: """
            import HTTPSessionTestKit

            func text(_ address: ListeningAddress) -> String {
                switch address {
                case .ip(let text, _), .unix(let text): text
                DEFAULT: "something new"
                }
            }
            func text(_ ending: StubResponse.Ending) -> String {
                switch ending {
                case .orderly, .truncated, .reset: "known"
                DEFAULT: "something new"
                }
            }
            func text(_ outcome: ProxyServer.Passage.Outcome) -> String {
                switch outcome {
                case .forwarded, .unauthorized, .foreignHost, .unreachable: "known"
                DEFAULT: "something new"
                }
            }
            """,
        additions: [
            ("SocketAddress.swift", "    case unix(String)\n", "    case unix(String)\n    case abstract(String)\n"),
            ("StubResponse.swift", "        case reset\n", "        case reset\n        case never\n"),
            ("ProxyServer.swift", "            case unreachable\n", "            case unreachable\n            case timedOut\n"),
        ],
        added: """
            let added: (ListeningAddress, StubResponse.Ending, ProxyServer.Passage.Outcome) = (.abstract("a"), .never, .timedOut)
            """)
}
