import Expectations
import NetworkLab
import Reachability
import Testing

/// Links and addresses, changed one command at a time.
@Suite(.requiresNamespaces)
struct LinkTests {
    @Test func `an interface that comes up step by step and goes down again changes the cause at each step`() throws {
        let network = try Network()
        let (host, router) = (network.host, network.router)
        let witness = try Witness(host, sees: "unsatisfied link/no-interface")

        try network.cable("v0")
        try witness.expect("unsatisfied link/interface-down", reasons: "cause-changed") {
            #expect($0.order == ["v0", "lo"] && $0.medium("v0") == "virtual wired" && $0.level("v0") == "off")
            #expect($0.detail == "interface v0 is switched off" && $0.evidence["interface"] == "v0")
        }
        try host.ip("link set v0 addrgenmode none")
        try host.ip("link set v0 up")
        try witness.expect("unsatisfied link/no-carrier", reasons: "cause-changed") { expectEqual($0.level("v0"), "no-carrier") }
        try router.ip("link set rv0 up")
        try witness.expect("unsatisfied address/no-address", reasons: "cause-changed") { expectEqual($0.level("v0"), "carrier") }
        try host.ip("addr add 10.1.0.1/24 dev v0")
        try witness.expect("unsatisfied route/no-route", reasons: "cause-changed") {
            #expect($0.level("v0") == "routable" && $0.interface("v0")?.addresses == ["10.1.0.1/24"])
        }
        try host.ip("route add default via 10.1.0.254")
        try witness.expect(
            "satisfied v0 wired 4 via 10.1.0.254",
            reasons: "interface-changed gateways-changed families-changed cause-changed")
        try host.ip("link set v0 down")
        try witness.expect(
            "unsatisfied link/interface-down",
            reasons: "interface-changed gateways-changed families-changed cause-changed")
        try host.ip("link set v0 up")
        try witness.expect("unsatisfied route/no-route", past: ["unsatisfied link/no-carrier"])
        try host.ip("link del v0")
        try witness.expect("unsatisfied link/no-interface", past: ["unsatisfied link/interface-down"]) {
            #expect($0.detail == "interface v0 is gone" && $0.order == ["lo"])
        }
    }

    @Test func `without carrier the path is unsatisfied although the kernel still routes and another uplink exists`() throws {
        let network = try Network()
        let (host, router) = (network.host, network.router)
        try network.uplink("v0", "10.1.0.1/24", "2001:db8:1::1/64")
        try network.uplink("v1", "10.2.0.1/24")
        try host.ip("route add default via 10.1.0.254")
        try host.ip("route add default via 10.2.0.254 metric 500")
        try host.ip("-6 route add default via 2001:db8:1::ff")
        let witness = try Witness(host, sees: "satisfied v0 wired 4+6 via 10.1.0.254 2001:db8:1::ff")

        try router.ip("link set rv0 down")
        try witness.expect("unsatisfied link/no-carrier", reasons: "interface-changed families-changed cause-changed") {
            #expect($0.level("v0") == "no-carrier" && $0.level("v1") == "routable" && $0.evidence["interface"] == "v0")
        }
        #expect(try host.ip("route get 198.51.100.1").contains("dev v0"))
        try router.ip("link set rv0 up")
        try witness.expect(
            "satisfied v0 wired 4+6 via 10.1.0.254 2001:db8:1::ff", past: ["satisfied v0 wired 4 via 10.1.0.254"])
        try router.ip("link set rv0 down")
        try witness.expect("unsatisfied link/no-carrier")
        // An administrator removes the routes, and the path uses the other uplink.
        try host.ip("route del default via 10.1.0.254")
        try witness.expect("satisfied v1 wired 4 via 10.2.0.254", reasons: "interface-changed gateways-changed")
    }

    @Test func `an added or removed address is published once`() throws {
        let network = try Network()
        try network.uplink("v0", "10.1.0.1/24")
        try network.host.ip("route add default via 10.1.0.254")
        let witness = try Witness(network.host, sees: "satisfied v0 wired 4 via 10.1.0.254")

        try network.host.ip("addr add 10.9.0.1/24 dev v0")
        try witness.expectNext(reasons: "addresses-changed") {
            expectEqual($0.interface("v0")?.addresses, ["10.1.0.1/24", "10.9.0.1/24"])
        }
        try network.host.ip("addr del 10.9.0.1/24 dev v0")
        try witness.expectNext(reasons: "addresses-changed") { expectEqual($0.interface("v0")?.addresses, ["10.1.0.1/24"]) }
        try network.host.ip("addr del 10.1.0.1/24 dev v0")
        try witness.expect("unsatisfied address/no-address", reasons: "addresses-changed families-changed cause-changed")
    }

    @Test func `an IPv6 address satisfies the path once duplicate address detection has finished`() throws {
        let network = try Network()
        try network.uplink("v0")
        try network.host.set("ipv6.conf.v0.dad_transmits", "3")
        let witness = try Witness(network.host, sees: "unsatisfied address/no-address")

        try network.host.ip("addr add 2001:db8:1::1/64 dev v0")
        try network.host.ip("-6 route add default via 2001:db8:1::ff")
        try witness.expect("unsatisfied address/tentative-address", reasons: "cause-changed")
        // Detection may finish before the route is added.
        try witness.expect(
            "satisfied v0 wired 6 via 2001:db8:1::ff", reasons: "interface-changed families-changed cause-changed",
            past: ["unsatisfied route/no-route"]
        ) { expectEqual($0.level("v0"), "routable") }
    }

    @Test
    func `an IPv6 address kept while its link was down is checked for duplicates again before the path is satisfied`() throws {
        let network = try Network()
        let host = network.host
        try network.uplink("v0")
        try host.set("ipv6.conf.v0.keep_addr_on_down", "1")
        try host.set("ipv6.conf.v0.dad_transmits", "2")
        let witness = try Witness(host, sees: "unsatisfied address/no-address")
        try host.ip("addr add 2001:db8:1::1/64 dev v0")
        try host.ip("-6 route add default via 2001:db8:1::ff")
        try witness.expect(
            "satisfied v0 wired 6 via 2001:db8:1::ff",
            past: ["unsatisfied address/tentative-address", "unsatisfied route/no-route"])

        try host.ip("link set v0 down")
        // The kernel announces the removed routes before the link.
        try witness.expect("unsatisfied link/interface-down", reasons: "families-changed", past: ["unsatisfied route/no-route"])
        try host.ip("link set v0 up")
        try host.ip("-6 route replace default via 2001:db8:1::ff")
        try witness.expect(
            "unsatisfied address/tentative-address",
            past: ["unsatisfied link/no-carrier", "unsatisfied address/no-address", "unsatisfied route/no-route"])
        try witness.expect(
            "satisfied v0 wired 6 via 2001:db8:1::ff", reasons: "families-changed", past: ["unsatisfied route/no-route"])
    }

    @Test func `an IPv6 address that another host has leaves the path unsatisfied`() throws {
        let network = try Network()
        try network.uplink("v0")
        try network.router.ip("addr add 2001:db8:1::1/64 dev rv0 nodad")
        let witness = try Witness(network.host, sees: "unsatisfied address/no-address")

        try network.host.ip("addr add 2001:db8:1::1/64 dev v0")
        try network.host.ip("-6 route add default via 2001:db8:1::ff")
        try witness.expect(
            "unsatisfied address/duplicate-address", reasons: "cause-changed", past: ["unsatisfied address/tentative-address"]
        ) { expectEqual($0.evidence["interface"], "v0") }
        try network.host.ip("addr del 2001:db8:1::1/64 dev v0")
        try witness.expect("unsatisfied address/no-address", reasons: "cause-changed")
    }

    @Test func `a renamed interface is published with its new name and the same index`() throws {
        let network = try Network()
        try network.uplink("v0", "10.1.0.1/24")
        try network.host.ip("route add default via 10.1.0.254")
        let witness = try Witness(network.host, sees: "satisfied v0 wired 4 via 10.1.0.254")

        // The index is above 255, like all indexes of the lab.
        var index = 0
        try network.host.ip("link set v0 name uplink0")
        try witness.expect("satisfied uplink0 wired 4 via 10.1.0.254", reasons: "interface-changed interfaces-changed") {
            index = $0.interface("uplink0")?.index ?? 0
            #expect(index >= 300 && $0.order == ["uplink0", "lo"])
        }
        #expect(try network.host.json("link show uplink0").contains("\"ifindex\":\(index)"))
    }

    @Test func `an interface that moves to another namespace is removed in the first and added in the second`() throws {
        let network = try Network()
        let other = try network.lab.host()
        try network.uplink("v0", "10.1.0.1/24")
        try network.host.ip("route add default via 10.1.0.254")
        let witness = try Witness(network.host, sees: "satisfied v0 wired 4 via 10.1.0.254")
        let there = try Witness(other, sees: "unsatisfied link/no-interface")

        try network.host.ip("link set v0 netns \(other.path)")
        try witness.expect("unsatisfied link/no-interface", past: ["unsatisfied link/interface-down"]) {
            expectEqual($0.order, ["lo"])
        }
        try there.expect("unsatisfied link/interface-down") { expectEqual($0.medium("v0"), "virtual wired") }
        try other.ip("link set v0 netns \(network.host.path)")
        try witness.expect("unsatisfied link/interface-down") { expectEqual($0.order, ["v0", "lo"]) }
        try there.expect("unsatisfied link/no-interface")
    }
}
