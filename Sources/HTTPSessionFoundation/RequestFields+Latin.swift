internal import Foundation
public import HTTPSession

extension RequestFields {
    /// `text` in ASCII by ICU's rules, other scripts in Latin letters: `日本` is `ri ben`. For `RequestFields.userAgent(product:version:system:)`,
    /// which leaves out what is not Latin.
    public static func latinized(_ text: String) -> String {
        let transform = StringTransform("Any-Latin; Latin-ASCII; [:^ASCII:] Remove")
        return text.applyingTransform(transform, reverse: false) ?? text.filter(\.isASCII)
    }
}
