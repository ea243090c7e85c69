"""Operations that gardenlets perform on Seeds during a rotation (spec 20 §17.2, spec 21 §10.5)."""
