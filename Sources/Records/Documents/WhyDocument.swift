package import Console
import FoundationEssentials
package import Reachability

/// The document of `why`: a verdict with its layers.
package struct WhyDocument {
    /// The time at which the document was created.
    package let moment: Moment
    package let evidence: DiagnosisEvidence
    package let diagnosis: Diagnosis
    /// The canary; `nil` if none is configured.
    package let canary: ServerUpdate?

    /// The rule for ``verdict``.
    package let rule: FailureRule

    package init(moment: Moment, evidence: DiagnosisEvidence, canary: ServerUpdate? = nil, rule: FailureRule = FailureRule()) {
        self.moment = moment
        self.rule = rule
        self.evidence = evidence
        self.canary = canary?.asInitial()
        diagnosis = Diagnosis(evidence)
    }

    /// The result, which decides the exit code: that of the target, or of the path if there is none, together with the canary's.
    package var verdict: StatusDocument.Verdict {
        explained.combined(with: canary.map(rule.verdict))
    }

    private var explained: StatusDocument.Verdict {
        guard evidence.endpoint != nil else { return evidence.path.status == .satisfied ? .holds : .doesNotHold }
        // A cause of one address counts too: the target's own cause may be another one.
        let causes = evidence.addresses.compactMap { $0.update?.cause } + [evidence.update?.cause].compactMap { $0 }
        if causes.contains(where: rule.names) { return .doesNotHold }
        return rule.verdict(diagnosis.status, diagnosis.cause)
    }

    /// The assessment of the result, for the closing line.
    package var assessment: TextStyle.Assessment {
        guard evidence.endpoint != nil else { return evidence.path.assessment }
        return diagnosis.status.assessment
    }

    /// The document as one line of JSON, without the newline.
    package func encode() -> [UInt8] {
        let (path, update) = (evidence.path, evidence.update)
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("v", RecordFormat.version)
            writer.member("ts", Timestamp.text(moment))
            writer.member("target", evidence.endpoint?.text)
            writer.member("status", evidence.endpoint == nil ? path.status.rawValue : diagnosis.status.rawValue)
            writer.member(diagnosis.cause)
            writer.member("rtt_ms", milliseconds: update?.roundTrip)
            writer.member("address", update?.address?.description)
            writer.member("family", update?.address?.family.rawValue)
            let interface = evidence.endpoint == nil ? path.interface : update?.interface
            writer.member("interface", interface?.name)
            writer.member("interface_type", interface?.type.rawValue)
            writer.key("layers")
            writer.array { writer in
                for step in diagnosis.steps { writer.object { Self.write(step, to: &$0) } }
            }
            writer.key("addresses")
            writer.array { writer in
                for result in evidence.addresses { writer.object { Self.write(result, to: &$0) } }
            }
            RecordEncoder.write(canary: canary, to: &writer)
        }
        return writer.bytes
    }

    /// The start of the document of several targets, before the first of their documents. A comma separates them.
    package static func listStart(_ moment: Moment) -> String {
        "{\"v\":\(RecordFormat.version),\"ts\":\"\(Timestamp.text(moment))\",\"targets\":["
    }

    /// The end of the document of several targets.
    package static let listEnd = "]}"

    private static func write(_ result: AddressResult, to writer: inout JSONWriter) {
        writer.member("address", result.address.description)
        writer.member("family", result.address.family.rawValue)
        writer.member("status", result.status.rawValue)
        writer.member(result.update?.cause)
        writer.member("rtt_ms", milliseconds: result.update?.roundTrip)
    }

    private static func write(_ step: Diagnosis.Step, to writer: inout JSONWriter) {
        writer.member("layer", step.layer.rawValue)
        writer.member("ok", step.finding.isWorking)
        writer.member("ms", milliseconds: step.duration)
        writer.member("detail", step.detail)
        writer.member(evidence: step.evidence)
    }
}
