// Reading and computing rotary position embeddings.
#include "frontend/models/Rope.h"
#include "frontend/models/Model.h"
#include <cmath>
#include <numbers>

using llvm::StringRef;

namespace gradc {

static std::optional<RopeType> typeNamed(StringRef name) {
  if (name == "default")
    return RopeType::standard;
  if (name == "linear")
    return RopeType::linear;
  if (name == "llama3")
    return RopeType::llama3;
  return std::nullopt;
}

/// The type under `rope_type` or its older name `type`; both may be given, if they agree.
static RopeType readType(ConfigReader &section) {
  StringRef key = section.has("rope_type") ? "rope_type" : "type";
  std::string name = section.string(key, "default");
  StringRef other = key == "type" ? "rope_type" : "type";
  if (section.has(other) && section.string(other, name) != name)
    section.refuse(other, "disagrees with " + inQuotes(key) + "; keep one");
  section.ignore(other);
  std::optional<RopeType> type = typeNamed(name);
  if (!type)
    section.refuse(key, "is not implemented; implemented are default, linear and llama3");
  return type.value_or(RopeType::standard);
}

static RopeSettings readSection(ConfigReader &section, double theta, int64_t positions) {
  constexpr double most = 1e9;
  RopeSettings settings;
  settings.type = readType(section);
  settings.theta = section.number("rope_theta", theta, 1, 1e12);
  section.accept("partial_rotary_factor", {"1.0", "1"});
  if (settings.type != RopeType::standard)
    settings.factor = section.required("factor", 1, most);
  if (settings.type == RopeType::llama3) {
    settings.lowFrequencyFactor = section.required("low_freq_factor", 1e-6, most);
    settings.highFrequencyFactor = section.required("high_freq_factor", 1e-6, most);
    settings.originalPositions =
        section.optionalInteger("original_max_position_embeddings", 1, limits::positions)
            .value_or(positions);
    if (settings.highFrequencyFactor <= settings.lowFrequencyFactor)
      section.refuse("high_freq_factor", "is not above \"low_freq_factor\"; exchange them");
  }
  section.refuseUnknown();
  return settings;
}

RopeSettings readRope(ConfigReader &config, int64_t positions) {
  RopeSettings settings;
  config.accept("partial_rotary_factor", {"1.0", "1"});
  settings.theta = config.number("rope_theta", settings.theta, 1, 1e12, /*nullable=*/true);
  double theta = settings.theta;
  bool thetaGiven = config.has("rope_theta");
  std::optional<ConfigReader> scaling = config.section("rope_scaling");
  std::optional<ConfigReader> parameters = config.section("rope_parameters");
  if (scaling)
    settings = readSection(*scaling, theta, positions);
  if (parameters) {
    RopeSettings fromParameters = readSection(*parameters, theta, positions);
    if (scaling && fromParameters != settings)
      config.fail("\"rope_scaling\" and \"rope_parameters\" disagree; keep one");
    settings = fromParameters;
  }
  if (thetaGiven && settings.theta != theta)
    config.refuse("rope_theta", "disagrees with that of the rope settings; keep one");
  return settings;
}

std::vector<double> ropeFrequencies(const RopeSettings &settings, int64_t headDim) {
  std::vector<double> frequencies(headDim / 2);
  for (int64_t i = 0; i < headDim / 2; ++i) {
    double frequency = std::pow(settings.theta, -2.0 * i / headDim);
    double turns = settings.originalPositions * frequency / (2 * std::numbers::pi);
    double slowed = frequency / settings.factor;
    if (settings.type == RopeType::linear) {
      frequency = slowed;
    } else if (settings.type == RopeType::llama3) {
      // `turns` is original/wavelength: below low all slowed, above high none.
      double low = settings.lowFrequencyFactor, high = settings.highFrequencyFactor;
      double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
      frequency = (1 - kept) * slowed + kept * frequency;
    }
    frequencies[i] = frequency;
  }
  return frequencies;
}

RopeTables ropeTables(const RopeSettings &settings, int64_t headDim, int64_t seq) {
  std::vector<double> frequencies = ropeFrequencies(settings, headDim);
  RopeTables tables;
  tables.cos.reserve(seq * frequencies.size());
  tables.sin.reserve(seq * frequencies.size());
  for (int64_t position = 0; position < seq; ++position) {
    for (double frequency : frequencies) {
      tables.cos.push_back(static_cast<float>(std::cos(position * frequency)));
      tables.sin.push_back(static_cast<float>(std::sin(position * frequency)));
    }
  }
  return tables;
}

} // namespace gradc
