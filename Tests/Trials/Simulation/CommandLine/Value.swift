import Foundation

/// The value of an option, or one element of its list.
struct Value {
  typealias UsageError = Settings.UsageError

  let option: String
  let text: String

  private func invalid(_ expected: String) -> UsageError { UsageError("\(option) takes \(expected), not '\(text)'") }

  /// Reads a list that is separated by commas.
  func list<Element>(_ read: (Value) throws(UsageError) -> Element) throws(UsageError) -> [Element] {
    var elements: [Element] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      elements.append(try read(Value(option: option, text: String(part))))
    }
    return elements
  }

  /// Reads a value, or `nil` from `none`.
  func optional<Wrapped>(_ read: (Value) throws(UsageError) -> Wrapped) throws(UsageError) -> Wrapped? {
    text == "none" ? nil : try read(self)
  }

  func count(atMost limit: Int) throws(UsageError) -> Int {
    guard let number = Int(text), (1...limit).contains(number) else { throw invalid("a number from 1 to \(limit)") }
    return number
  }

  func seed() throws(UsageError) -> UInt64 {
    guard let number = UInt64(text) else { throw invalid("a number from 0 to \(UInt64.max)") }
    return number
  }

  func bytes() throws(UsageError) -> Int {
    guard let bytes = Text.bytes(text) else { throw invalid("a number of bytes, such as 65536, 64K, 512M or 2G") }
    return bytes
  }

  func number(_ expected: String) throws(UsageError) -> Double {
    guard let number = Double(text), number.isFinite, number >= 0 else { throw invalid(expected) }
    return number
  }

  func seconds() throws(UsageError) -> Double { try number("a number of seconds of at least 0") }

  func positive(_ unit: String) throws(UsageError) -> Double {
    guard let number = Double(text), number.isFinite, number > 0 else { throw invalid("a number of \(unit) above 0") }
    return number
  }

  func routing() throws(UsageError) -> FleetConfiguration.Routing {
    guard let routing = FleetConfiguration.Routing(rawValue: text) else { throw invalid("random, hash or a list of both") }
    return routing
  }

  func sizes() throws(UsageError) -> (Int, Int) {
    let bounds = text.components(separatedBy: "..").map { Text.bytes($0) }
    guard bounds.count == 2, let smallest = bounds[0], let largest = bounds[1], smallest > 0 else {
      throw invalid("MIN..MAX in bytes, such as 2K..80K")
    }
    return (smallest, largest)
  }

  /// Reads `NODE@FROM` or `NODE@FROM..TO`. The shared tier has the name `shared`.
  func loss() throws(UsageError) -> FleetConfiguration.Loss {
    let expected = "NODE@FROM..TO or shared@FROM..TO in seconds, with nodes from 0 on"
    guard let (name, times) = parts else { throw invalid(expected) }
    let bounds = times.components(separatedBy: "..").map { Double($0) }
    guard (1...2).contains(bounds.count), let from = bounds[0], from.isFinite, from >= 0 else { throw invalid(expected) }
    if bounds.count == 2 {
      guard let to = bounds[1], to.isFinite, to > from else { throw invalid(expected) }
    }
    let node = Int(name)
    guard name == "shared" || node.map({ $0 >= 0 }) == true else { throw invalid(expected) }
    return FleetConfiguration.Loss(node: node, from: from, to: bounds.count == 2 ? bounds[1] : nil)
  }

  /// Reads `OBJECT@TIME` or `SHARE%@TIME`.
  func purge() throws(UsageError) -> FleetConfiguration.Purge {
    let expected = "OBJECT@TIME or SHARE%@TIME in seconds"
    guard let (name, text) = parts, !name.isEmpty, let time = Double(text), time.isFinite, time >= 0 else {
      throw invalid(expected)
    }
    guard name.hasSuffix("%") else { return FleetConfiguration.Purge(selection: .object(name), time: time) }
    guard let share = Double(name.dropLast()), (0...100).contains(share) else { throw invalid(expected) }
    return FleetConfiguration.Purge(selection: .share(share / 100), time: time)
  }

  /// The text before and after the last at sign.
  private var parts: (name: String, rest: String)? {
    guard let sign = text.lastIndex(of: "@") else { return nil }
    return (String(text[..<sign]), String(text[text.index(after: sign)...]))
  }
}
