import Expectations
import Testing

@testable import Reachability

@Suite struct IncidentSuspectsTests {
    private typealias T = IncidentTranscript

    /// Writes the suspects as `path gateway 192.0.2.1`; with `?` if other targets must show the fault too.
    private func text(
        _ layer: Cause.Layer, _ code: Cause.Code, _ evidence: [String: String] = [:], _ state: StatusName = .unreachable
    ) throws -> String {
        let suspects = IncidentSuspects(T.cause(layer, code, evidence), of: try Endpoint("b:2"), state)
        let all = suspects.shared + (suspects.shared.first?.isProved == true ? [] : [suspects.last])
        return all.map { "\($0.scope.rawValue) \($0.subject)\($0.isProved ? "" : "?")" }.joined(separator: ", ")
    }

    @Test func `the suspects are taken from the evidence`() throws {
        try expectEqual(text(.link, .interfaceDown, ["interface": "eth0"]), "local interface eth0")
        try expectEqual(text(.address, .noAddress, ["interface": "eth0"]), "local interface eth0")
        try expectEqual(text(.address, .duplicateAddress, ["interface": "eth0", "link_address": "02:…"]), "path target b:2")
        try expectEqual(text(.route, .routeBlackhole, ["address": "192.0.2.1"]), "local interface")
        try expectEqual(text(.firewall, .localDrop, ["interface": "eth0"]), "local interface eth0")
        try expectEqual(text(.local, .fileLimit), "local interface")
        try expectEqual(text(.neighbor, .gatewaySilent, ["gateway": "192.0.2.1"]), "path gateway 192.0.2.1")
        let linkLocal = ["gateway": "fe80::1", "interface": "eth0"]
        try expectEqual(text(.neighbor, .gatewaySilent, linkLocal), "path gateway fe80::1%eth0")
        try expectEqual(
            text(.neighbor, .hostSilent, ["address": "192.0.2.9"]), "path host 192.0.2.9?, path target b:2")
        try expectEqual(text(.neighbor, .hostSilent, ["address": "fe80::9"]), "path target b:2")
        try expectEqual(text(.dns, .noResolver), "local resolver")
        try expectEqual(
            text(.dns, .resolverSilent, ["resolver": "192.0.2.53"]),
            "path gateway 192.0.2.53?, path resolver 192.0.2.53?, path target b:2")
        try expectEqual(
            text(.dns, .resolverSilent, ["resolver": "192.0.2.53", "gateway": "10.0.0.1"]),
            "path gateway 10.0.0.1?, path resolver 192.0.2.53?, path target b:2")
        try expectEqual(text(.dns, .serverFailure), "path resolver?, path target b:2")
        try expectEqual(text(.dns, .nameNotFound, [:], .down), "server target b:2")
        try expectEqual(text(.network, .tunnelSilent, ["interface": "wg0"]), "path interface wg0")
        try expectEqual(
            text(.network, .upstreamSilent, ["gateway": "192.0.2.1", "address": "198.51.100.7"]),
            "path gateway 192.0.2.1?, path host 198.51.100.7?, path target b:2")
        try expectEqual(text(.network, .upstreamSilent, ["interface": "wg0"]), "path interface wg0?, path target b:2")
        try expectEqual(
            text(.network, .netUnreachable, ["hop": "192.0.2.1", "address": "192.0.2.9"]), "path hop 192.0.2.1")
        try expectEqual(
            text(.network, .hostUnreachable, ["hop": "192.0.2.1", "address": "192.0.2.9"]),
            "path hop 192.0.2.1?, path host 192.0.2.9?, path hop 192.0.2.1")
        try expectEqual(
            text(.network, .portFiltered, ["hop": "192.0.2.9", "address": "192.0.2.9"], .down), "server target b:2")
        try expectEqual(
            text(.tcp, .timeout, ["gateway": "192.0.2.1", "address": "198.51.100.7"]),
            "path gateway 192.0.2.1?, path host 198.51.100.7?, path target b:2")
        try expectEqual(
            text(.tcp, .timeout, ["gateway": "192.0.2.1", "address": "198.51.100.7", "witness": "10.0.0.9"], .down),
            "server host 198.51.100.7?, server target b:2")
        try expectEqual(text(.tcp, .timeout, ["address": "198.51.100.7"], .degraded), "server target b:2")
        try expectEqual(text(.tls, .certificateExpired, [:], .down), "server target b:2")
    }

    @Test func `upstream silence of several networks proves the gateway, or the tunnel without one`() throws {
        let suspects = IncidentSuspects(T.severalNetworks, of: try Endpoint("b:2"), .unreachable)
        expectEqual(suspects.shared.map(\.subject), [.init(.gateway, "192.0.2.1")])
        #expect(suspects.shared[0].isProved && !suspects.isCertain)
        let tunnel = Cause(
            .network, .upstreamSilent, detail: "", evidence: ["interface": .text("wg0"), "silent_networks": .number(3)])
        expectEqual(
            IncidentSuspects(tunnel, of: try Endpoint("b:2"), .unreachable).shared.map(\.subject), [.init(.interface, "wg0")])
    }

    @Test func `every layer and code has suspects`() throws {
        let evidence = [
            "hop": "192.0.2.1", "interface": "eth0", "gateway": "192.0.2.2", "resolver": "192.0.2.3", "address": "192.0.2.4",
        ]
        for layer in Cause.Layer.allCases {
            for code in Cause.Code.allCases {
                for state in StatusName.allCases {
                    for evidence in [evidence, [:]] {
                        let suspects = IncidentSuspects(T.cause(layer, code, evidence), of: try Endpoint("b:2"), state)
                        let distances = suspects.shared.map(\.subject.distance)
                        #expect(distances == distances.sorted() && distances.count <= 2)
                    }
                }
            }
        }
    }
}
