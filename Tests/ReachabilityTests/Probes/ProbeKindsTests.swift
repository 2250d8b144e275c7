import Expectations
import Foundation
import Testing

@testable import Reachability

/// The registry of the kinds of probes.
@Suite struct ProbeKindsTests {
    @Test func `the words of all schemes differ, and each scheme has its kind and its form`() {
        let words = Endpoint.Scheme.allCases.map(\.rawValue)
        expectEqual(Set(words).count, words.count)
        for scheme in Endpoint.Scheme.allCases {
            expectEqual(Endpoint.Scheme(rawValue: scheme.rawValue), scheme)
            expectEqual(scheme.kind.schemes.contains { $0.name == scheme.rawValue }, true)
            #expect(scheme.form.hasPort || scheme.defaultPort == 0)
        }
        expectNil(Endpoint.Scheme(rawValue: "gopher"))
        expectEqual(Endpoint.Scheme.allCases.filter { $0.form.isUnwritten }, [.tcp])
    }

    @Test func `the names of settings and of their keys differ, and have their form`() {
        var names: [String] = []
        for kind in ProbeKinds.all {
            for settings in kind.settings {
                names.append(settings.name)
                check(settings)
            }
        }
        expectEqual(Set(names).count, names.count)
    }

    private func check<Settings: KindSettings>(_: Settings.Type) {
        let names = Settings.keys.map(\.name)
        expectEqual(Set(names).count, names.count, "\(Settings.name)")
        for name in names + [Settings.name] { #expect(name.wholeMatch(of: /[a-z][a-z_]*/) != nil, "\(name)") }
        expectEqual(Settings(Settings().recorded), Settings())
    }

    @Test func `every target's layers begin with those up to its route, and contain those of its causes`() {
        for kind in ProbeKinds.all {
            if !kind.isReported { expectEqual(Array(kind.layers.prefix(3)), [.link, .address, .route]) }
            for (layer, codes) in kind.codes { #expect(kind.layers.contains(layer) && !codes.isEmpty, "\(layer)") }
            let silence = kind.silence
            #expect(Cause.Code.byLayer.contains { $0.layer == silence.layer && $0.codes.contains(silence.code) })
        }
    }

    @Test func `settings of a kind are kept beside those of another, and defaults take no place`() throws {
        var settings = ProbeSettings()
        settings.ping.count = 3
        settings.http.followsRedirects = false
        #expect(settings.ofKinds.count == 2 && settings.ofKinds.first is HTTPProbeSettings)
        var other = ProbeSettings()
        other.http.followsRedirects = false
        #expect(settings != other)
        other.ping.count = 3
        expectEqual(other, settings)
        expectEqual(other.hashValue, settings.hashValue)
        settings.ping.count = 1
        settings.http.followsRedirects = true
        expectEqual(settings, ProbeSettings())
    }

    @Test func `values below their minimum are raised to it, whether they are given at creation or set`() {
        let created = ProbeSettings(interval: .zero, timeout: .zero, failAfter: 0, recoverAfter: -1, families: [])
        var changed = ProbeSettings()
        (changed.interval, changed.timeout) = (.zero, .seconds(-1))
        (changed.failAfter, changed.recoverAfter, changed.families) = (.min, 0, [])
        expectEqual(changed, created)
        #expect(changed.interval == .milliseconds(10) && changed.timeout == .milliseconds(1))
        #expect(changed.failAfter == 1 && changed.recoverAfter == 1 && changed.families == [.v4, .v6])
    }

    @Test func `a recording keeps the settings of each kind under its name, and those of earlier versions are read`() throws {
        var settings = ProbeSettings()
        settings.ping.size = 1400
        settings.tls.certificateDays = 3
        let data = try JSONEncoder().encode(RecordedSettings(settings))
        let text = String(decoding: data, as: UTF8.self)
        #expect(text.contains("\"ping\":{") && text.contains("\"tls\":{") && !text.contains("\"http\""))
        expectEqual(try JSONDecoder().decode(RecordedSettings.self, from: data).settings, settings)
        let object =
            try JSONSerialization.jsonObject(with: JSONEncoder().encode(RecordedSettings(ProbeSettings()))) as? [String: Any]
        var earlier = try #require(object)
        earlier["levels"] = [
            "serverName": "a.example", "insecure": true, "certificateDays": 7, "method": "HEAD", "redirects": false,
            "versions": ["1.1"], "declared": true,
        ]
        let read = try JSONDecoder().decode(RecordedSettings.self, from: JSONSerialization.data(withJSONObject: earlier)).settings
        #expect(read.tls.serverName == "a.example" && read.tls.isInsecure && read.tls.certificateDays == 7)
        #expect(read.http.method == "HEAD" && !read.http.followsRedirects && read.http.expectation.isDeclared)
    }

    @Test func `the facts of each kind are kept in a recording, beside the times of all`() throws {
        var levels = LevelResult()
        levels.answerNanoseconds = 7
        levels.bytesSent = 9
        var answers = EchoAnswers()
        answers.noteSent()
        _ = answers.receive(0, roundTrip: 7)
        levels.facts[EchoFacts.self] = EchoFacts(answers)
        levels.handshakeRedirects = ["http://a.example/"]
        levels.httpEnding = .systemError(104)
        let data = try JSONEncoder().encode(levels)
        expectEqual(try JSONDecoder().decode(LevelResult.self, from: data), levels)
        levels.facts[EchoFacts.self] = EchoFacts()
        levels.handshakeRedirects = nil
        levels.httpEnding = nil
        #expect(levels.facts.isEmpty)
    }
}
