import Expectations
import Foundation
import Testing

@testable import HTTPSession

struct SidecarTests {
    private func sidecar(_ validator: StrongValidator? = .entityTag("\"a\""), total: Int64? = 1_000) throws -> Sidecar {
        let url = try #require(URL(string: "https://host/file?signature=1"))
        let digest = try #require(ContentDigest(.sha256, Data(repeating: 1, count: 32)))
        let resumption = try #require(Resumption(url: url, validator: validator, total: total, digest: digest))
        return Sidecar(resumption: resumption, start: try #require(URL(string: "https://host/start")), boot: "this", synced: 400)
    }

    @Test func `a stored sidecar is read again`() throws {
        for validator in [nil, .entityTag("\"W/\\\u{1F600}\""), StrongValidator.lastModified("Sun, 06 Nov 1994 08:49:37 GMT")] {
            let sidecar = try sidecar(validator, total: nil)
            try expectEqual(Sidecar(decoding: try sidecar.encoded()), sidecar)
        }
    }

    @Test func `in the same boot the file's length counts, after a reboot the synced bytes`() throws {
        let sidecar = try sidecar()
        expectEqual(sidecar.validBytes(of: 700, boot: "this"), 700)
        expectEqual(sidecar.validBytes(of: 700, boot: "another"), 400)
        expectEqual(sidecar.validBytes(of: 300, boot: "another"), 300)
        expectEqual(sidecar.validBytes(of: 1_000, boot: "this"), 1_000)
        // Another program has written to the file.
        expectEqual(sidecar.validBytes(of: 1_001, boot: "this"), 0)
    }

    @Test func `without a boot identifier the synced bytes count`() throws {
        var sidecar = try sidecar()
        sidecar.boot = ""
        expectEqual(sidecar.validBytes(of: 700, boot: ""), 400)
    }

    @Test(arguments: [
        "", "{}", "[]", "\u{0}", #"{"version":0}"#, #"{"version":1}"#,
        #"{"version":1,"url":"https://host/","start":"https://host/","boot":"x","synced":-1,"entity_tag":"\"a\""}"#,
        #"{"version":1,"url":"https://host/","start":"https://host/","boot":"x","synced":0}"#,
        #"{"version":1,"url":"https://host/","start":"https://host/","boot":"x","synced":0,"total":-1,"entity_tag":"\"a\""}"#,
    ]) func `data that is not a sidecar is damaged`(_ text: String) {
        #expect(throws: Sidecar.ReadingError.damaged) { try Sidecar(decoding: Data(text.utf8)) }
    }

    @Test func `a sidecar of a newer version is not read`() {
        #expect(throws: Sidecar.ReadingError.newer(2)) { try Sidecar(decoding: Data(#"{"version":2}"#.utf8)) }
    }
}
