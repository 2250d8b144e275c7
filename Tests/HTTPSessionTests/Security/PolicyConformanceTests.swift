import Expectations
import Foundation
import Testing

@testable import HTTPSession
import HTTPSessionFoundation

/// The documented behavior of AFNetworking's AFSecurityPolicy, with real chains through the verification callback.
@Suite struct PolicyConformanceTests {
    @Suite struct Defaults {
        @Test func `a default policy pins nothing`() { expectEqual(SecurityPolicy.default.pinningMode, .none) }
        @Test func `a default policy allows no invalid certificates`() {
            #expect(!SecurityPolicy.default.allowsInvalidCertificates)
        }
        @Test func `a default policy validates the domain name`() { #expect(SecurityPolicy.default.validatesDomainName) }
        @Test func `a default policy has no pinned certificates`() { expectEmpty(SecurityPolicy.default.pinnedCertificates) }

        @Test func `a default policy accepts a valid chain when no name is known`() throws {
            try expectEqual(connect(.default, to: "leaf-chain", host: nil), .accepted)
        }
        @Test func `a default policy accepts a valid chain for the right name`() throws {
            try expectEqual(connect(.default, to: "leaf-chain", host: "localhost"), .accepted)
        }
        @Test func `a default policy refuses a self-signed certificate`() throws {
            try expectEqual(connect(.default, to: "self-signed-san", host: nil), .refused(.certificateHasUnknownRoot))
        }
        @Test func `a default policy refuses a valid chain for the wrong name`() throws {
            try expectEqual(connect(.default, to: "leaf-chain", host: "apple.com"), .refused(.certificateUntrusted))
        }
    }

    /// The ten cases that certificate pinning and public key pinning share.
    @Suite struct Pinning {
        static let modes: [SecurityPolicy.PinningMode] = [.publicKey, .certificate]

        private func policy(_ mode: SecurityPolicy.PinningMode, _ pins: String...) throws -> SecurityPolicy {
            SecurityPolicy(pinningMode: mode, pinnedCertificates: Set(try pins.map(MintedCertificates.one)))
        }

        @Test(arguments: modes) func `a pinning policy has pinned certificates`(_ mode: SecurityPolicy.PinningMode) throws {
            #expect(!(try policy(mode, "leaf", "root").pinnedCertificates.isEmpty))
        }
        @Test(arguments: modes) func `a pinning policy has the certificate it was given`(_ mode: SecurityPolicy.PinningMode)
            throws
        {
            #expect(try policy(mode, "leaf", "root").pinnedCertificates.contains(MintedCertificates.one("leaf")))
        }
        @Test(arguments: modes) func `the pinned leaf is accepted`(_ mode: SecurityPolicy.PinningMode) throws {
            try expectEqual(connect(policy(mode, "leaf"), to: "leaf-chain", host: nil), .accepted)
        }
        @Test(arguments: modes) func `the pinned intermediate is accepted`(_ mode: SecurityPolicy.PinningMode) throws {
            try expectEqual(connect(policy(mode, "intermediate"), to: "leaf-chain", host: nil), .accepted)
        }
        @Test(arguments: modes) func `the pinned root is accepted`(_ mode: SecurityPolicy.PinningMode) throws {
            try expectEqual(connect(policy(mode, "root"), to: "leaf-chain", host: nil), .accepted)
        }
        @Test(arguments: modes) func `the entire pinned chain is accepted`(_ mode: SecurityPolicy.PinningMode) throws {
            try expectEqual(connect(policy(mode, "leaf", "intermediate", "root"), to: "leaf-chain", host: nil), .accepted)
        }
        @Test(arguments: modes) func `unrelated pins beside a matching pin do not matter`(_ mode: SecurityPolicy.PinningMode)
            throws
        {
            let policy = try policy(mode, "leaf", "foreign-leaf", "foreign-root", "self-signed-san")
            try expectEqual(connect(policy, to: "leaf-chain", host: nil), .accepted)
        }
        @Test(arguments: modes) func `the pinned leaf is accepted for the right name`(_ mode: SecurityPolicy.PinningMode) throws {
            try expectEqual(connect(policy(mode, "leaf"), to: "leaf-chain", host: "localhost"), .accepted)
        }
        @Test(arguments: modes) func `a pinning policy without pins refuses every server`(_ mode: SecurityPolicy.PinningMode)
            throws
        {
            try expectEqual(connect(policy(mode), to: "leaf-chain", host: nil), .refused(.pinMismatch))
        }
        @Test(arguments: modes) func `another site's valid chain is refused`(_ mode: SecurityPolicy.PinningMode) throws {
            try expectEqual(
                connect(policy(mode, "leaf"), to: "foreign-leaf-chain", host: nil, roots: "foreign-root"),
                .refused(.pinMismatch))
        }
        @Test(arguments: modes) func `the pinned leaf is refused for the wrong name`(_ mode: SecurityPolicy.PinningMode) throws {
            try expectEqual(connect(policy(mode, "leaf"), to: "leaf-chain", host: "apple.com"), .refused(.certificateUntrusted))
        }
        @Test(arguments: modes) func `several pins that do not match refuse another site and accept their own`(
            _ mode: SecurityPolicy.PinningMode
        )
            throws
        {
            let policy = try policy(mode, "leaf", "intermediate", "root")
            try expectEqual(
                connect(policy, to: "foreign-leaf-chain", host: nil, roots: "foreign-root"), .refused(.pinMismatch))
            try expectEqual(connect(policy, to: "leaf-chain", host: nil), .accepted)
        }
    }

    @Suite struct Names {
        @Test func `without name validation a wrong name is accepted`() throws {
            var policy = SecurityPolicy.default
            policy.validatesDomainName = false
            try expectEqual(connect(policy, to: "leaf-chain", host: "www.apple.com"), .accepted)
        }
        /// AFNetworking accepts the common name, as Apple's systems did until 2019. RFC 9525 section 2 does not allow it.
        @Test(arguments: [("self-signed-san", true), ("self-signed-cn", false)])
        func `a pinned self-signed certificate is accepted for its alternative name, not for its common name`(
            _ name: String, _ isAccepted: Bool
        ) throws {
            var policy = SecurityPolicy(pinningMode: .publicKey, pinnedCertificates: try MintedCertificates.set(name))
            policy.allowsInvalidCertificates = true
            try expectEqual(
                connect(policy, to: name, host: "foobar.com"), (isAccepted ? .accepted : .refused(.certificateUntrusted)))
        }
        @Test func `with name validation a wrong name is refused`() throws {
            try expectEqual(connect(.default, to: "leaf-chain", host: "www.apple.com"), .refused(.certificateUntrusted))
        }
        @Test func `a pinned self-signed certificate without any name is refused`() throws {
            var policy = SecurityPolicy(
                pinningMode: .certificate, pinnedCertificates: try MintedCertificates.set("self-signed-none"))
            policy.allowsInvalidCertificates = true
            try expectEqual(connect(policy, to: "self-signed-none", host: "foobar.com"), .refused(.certificateUntrusted))
        }
    }

    @Suite struct SelfSigned {
        private func policy(
            _ mode: SecurityPolicy.PinningMode, allowing: Bool = true, pins: String..., names: Bool = true
        ) throws -> SecurityPolicy {
            var policy = SecurityPolicy(pinningMode: mode, pinnedCertificates: Set(try pins.map(MintedCertificates.one)))
            policy.allowsInvalidCertificates = allowing
            policy.validatesDomainName = names
            return policy
        }

        @Test func `invalid certificates allowed: self-signed is accepted if no name is known`() throws {
            try expectEqual(connect(policy(.none), to: "self-signed-san", host: nil), .accepted)
        }
        @Test func `invalid certificates allowed: self-signed with a pin and the right name is accepted`() throws {
            try expectEqual(
                connect(policy(.publicKey, pins: "self-signed-san"), to: "self-signed-san", host: "foobar.com"), .accepted)
        }
        @Test func `invalid certificates allowed, no pins, no name validation: self-signed is accepted`() throws {
            try expectEqual(connect(policy(.none, names: false), to: "self-signed-san", host: "foobar.com"), .accepted)
        }
        @Test func `invalid certificates not allowed: self-signed is refused`() throws {
            try expectEqual(
                connect(policy(.none, allowing: false), to: "self-signed-san", host: nil),
                .refused(.certificateHasUnknownRoot))
        }
        @Test func `invalid certificates allowed, public key pinning without pins: self-signed is refused`() throws {
            try expectEqual(
                connect(policy(.publicKey), to: "self-signed-san", host: "foobar.com"), .refused(.certificateUntrusted))
        }
        @Test func `invalid certificates allowed, pins but no pinning mode, name validation: self-signed is refused`() throws {
            try expectEqual(
                connect(policy(.none, pins: "self-signed-san"), to: "self-signed-san", host: "foobar.com"),
                .refused(.certificateUntrusted))
        }
        @Test func `invalid certificates allowed, no pins, name validation: self-signed is refused`() throws {
            try expectEqual(connect(policy(.none), to: "self-signed-san", host: "foobar.com"), .refused(.certificateUntrusted))
        }
    }

    @Suite struct Values {
        private func policy() throws -> SecurityPolicy {
            var policy = SecurityPolicy(pinningMode: .certificate, pinnedCertificates: try MintedCertificates.set("leaf", "root"))
            policy.allowsInvalidCertificates = true
            policy.validatesDomainName = false
            policy.hostPins = [try HostPins("*.example.test", pins: [MintedCertificates.one("leaf").publicKeyPin.description])]
            policy.roots = .systemAnd(try MintedCertificates.set("root"))
            policy.revocation = try RevocationLists(MintedCertificates.data("intermediate.crl"), scope: .completeChain)
            policy.maximumTLSVersion = .v1_3
            policy.cipherList = "ECDHE+AESGCM"
            return policy
        }

        @Test func `a copy of a security policy is equal and independent`() throws {
            let policy = try policy()
            var copy = policy
            #expect(copy == policy && copy.hashValue == policy.hashValue)
            copy.pinnedCertificates = []
            #expect(copy != policy && policy.pinnedCertificates.count == 2)
        }

        @Test func `a security policy is equal after encoding and decoding`() throws {
            let policy = try policy()
            try expectEqual(JSONDecoder().decode(SecurityPolicy.self, from: JSONEncoder().encode(policy)), policy)
            let list = PropertyListEncoder()
            try expectEqual(PropertyListDecoder().decode(SecurityPolicy.self, from: list.encode(policy)), policy)
        }
    }
}
