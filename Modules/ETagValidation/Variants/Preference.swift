/// The normalization of content negotiation fields (RFC 9110 §12.5): members in the order of their weights, in lower case,
/// without blanks around `;`.
///
/// Members of equal weight retain their order only in `Accept-Language`. The specification gives it no meaning there, but servers
/// use it (§12.5.4). In the other fields, the order has no meaning.
struct Preference {
  /// The weight in thousandths, 1,000 if none is stated (§12.4.2).
  private let weight: Int
  private let text: [UInt8]

  /// Returns the normalized value of a line without weights, quotes and capital letters, or `nil` for any other line. Nearly all
  /// lines are like this, and this path costs a tenth. Every request for a response with `Vary` uses it.
  ///
  /// - Parameter isOrdered: Whether the members must retain their order.
  static func normalized(plain line: [UInt8], isOrdered: Bool) -> [UInt8]? {
    var members: [Range<Int>] = []
    members.reserveCapacity(8)
    var start: Int?
    var end = 0
    for (index, byte) in line.enumerated() {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: ";"), UInt8(ascii: "A")...UInt8(ascii: "Z"): return nil
      case UInt8(ascii: ","):
        if let start { members.append(start..<end) }
        start = nil
      case 0x20, 0x09: continue
      default:
        start = start ?? index
        end = index + 1
      }
    }
    if let start { members.append(start..<end) }
    if !isOrdered { members.sort { line[$0].lexicographicallyPrecedes(line[$1]) } }
    var text: [UInt8] = []
    text.reserveCapacity(line.count + members.count)
    for member in members {
      if !text.isEmpty { text += [UInt8(ascii: ","), 0x20] }
      text += line[member]
    }
    return text
  }

  /// Returns the normalized value of the members of a field.
  ///
  /// - Parameters:
  ///   - members: The members of all lines of the field.
  ///   - isTyped: Whether the members are media types, whose parameters may be case-sensitive.
  ///   - isOrdered: Whether members of equal weight must retain their order.
  static func normalized(_ members: [ArraySlice<UInt8>], isTyped: Bool, isOrdered: Bool) -> [UInt8] {
    let sorted = members.map { Preference($0, isTyped: isTyped) }.enumerated().sorted { a, b in
      guard a.element.weight == b.element.weight else { return a.element.weight > b.element.weight }
      guard !isOrdered, a.element.text != b.element.text else { return a.offset < b.offset }
      return a.element.text.lexicographicallyPrecedes(b.element.text)
    }
    return Array(sorted.map(\.element.text).joined(separator: [UInt8(ascii: ","), 0x20]))
  }

  private init(_ member: ArraySlice<UInt8>, isTyped: Bool) {
    // Quoted text must not be changed.
    guard !member.contains(UInt8(ascii: "\"")) else {
      (weight, text) = (1_000, Array(member))
      return
    }
    var parts = member.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false).map { Array(Self.trimmed($0)) }
    for index in parts.indices where !isTyped || index == 0 { parts[index] = parts[index].map(Self.lowered) }
    weight = parts.dropFirst().compactMap(Self.weight).first ?? 1_000
    text = Array(parts.joined(separator: [UInt8(ascii: ";")]))
  }

  /// Returns a weight such as `q=0.5` in thousandths, or `nil` if the parameter is not a valid weight.
  private static func weight(_ parameter: [UInt8]) -> Int? {
    guard parameter.count >= 3, lowered(parameter[0]) == UInt8(ascii: "q"), parameter[1] == UInt8(ascii: "=") else { return nil }
    let digits = parameter.dropFirst(2)
    guard let first = digits.first, first == UInt8(ascii: "0") || first == UInt8(ascii: "1"), digits.count <= 5,
      digits.count == 1 || digits.dropFirst().first == UInt8(ascii: ".")
    else { return nil }
    var value = first == UInt8(ascii: "1") ? 1_000 : 0
    var unit = 100
    for digit in digits.dropFirst(2) {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
      value += Int(digit - UInt8(ascii: "0")) * unit
      unit /= 10
    }
    return min(value, 1_000)
  }

  private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var bytes = bytes.drop { $0 == 0x20 || $0 == 0x09 }
    while let last = bytes.last, last == 0x20 || last == 0x09 { bytes.removeLast() }
    return bytes
  }

  private static func lowered(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }
}
