internal import Foundation
public import HTTPSession

extension RequestFields {
    /// Returns `text` transliterated to ASCII by ICU's rules: `日本` becomes `ri ben`.
    ///
    /// For `RequestFields.userAgent(product:version:system:)`, which omits characters that are not Latin.
    public static func latinized(_ text: String) -> String {
        let transform = StringTransform("Any-Latin; Latin-ASCII; [:^ASCII:] Remove")
        return text.applyingTransform(transform, reverse: false) ?? text.filter(\.isASCII)
    }
}
